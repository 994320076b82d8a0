# Writes the words of a SPIR-V module as a C++ initializer list. MODULE: input, OUTPUT: output.
file(READ ${MODULE} hex HEX)
# SPIR-V is little-endian here: bytes aabbccdd make the word 0xddccbbaa.
string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," words "${hex}")
string(REGEX REPLACE "((0x........,)(0x........,)(0x........,)(0x........,)(0x........,)(0x........,)(0x........,)(0x........,))" "\\1\n" words "${words}")
file(WRITE ${OUTPUT} "${words}\n")
