#include <mulciber/mulciber.h>

#include <iostream>

int main(int argc, char** argv) {
  try {
    mulciber::Translator translator(mulciber::open_device(), argc > 1 ? argv[1] : "assets/en-de");
    for (const char* text : {"A dog runs.", "Two men are cooking."})
      std::cout << translator.translate(text).text << '\n';
  } catch (const mulciber::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
