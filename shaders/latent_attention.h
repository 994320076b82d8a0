// Latent attention: constants in addition to the family's parameters (attention.h).
#ifndef MULCIBER_SHADERS_LATENT_ATTENTION_H
#define MULCIBER_SHADERS_LATENT_ATTENTION_H

// Columns of the largest head where all heads share one key, whose last columns are its value.
#define MAX_LATENT_SIZE 1024

#endif
