//! Tells the binary which compiler it was built with.

use std::process::Command;

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    let version = version.unwrap_or_else(|_| "unknown".into());
    println!("cargo:rustc-env=VERSUS_RUSTC={version}");
    println!("cargo:rerun-if-changed=build.rs");
}
