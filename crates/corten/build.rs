//! How the program is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Two million bytes of relocations become a tenth of it. Linkers that do not know the wish only say so; a C library that
    // can read the result (glibc 2.36) is on every machine whose linker makes it.
    println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
}
