//! The release binary: small, and without a trace of the test seams.
#![allow(missing_docs, clippy::disallowed_methods, reason = "a test builds and looks at a file")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the program as users do, into a folder of its own, so that no other build is disturbed.
fn release_binary() -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "--quiet", "--bin", "lychgate", "--target-dir"])
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("because cargo runs this test");
    assert!(status.success(), "the release build failed");
    target.join("release/lychgate")
}

/// Four mebibytes: the program is started on every turn of an agent, and its size is part of that cost. The hooks of six
/// agents and the continuation guard need more than the three that were enough before them.
const BYTES_MAX: usize = 4 << 20;

fn holds(binary: &[u8], word: &str) -> bool {
    binary.windows(word.len()).any(|window| window == word.as_bytes())
}

#[test]
fn the_release_binary_holds_no_test_seam_and_stays_small() {
    let binary = std::fs::read(release_binary()).expect("because it was just built");
    assert!(holds(&binary, "LYCHGATE_ROOT"), "the search itself finds what is there");
    for seam in ["LYCHGATE_TEST", ".reached"] {
        assert!(!holds(&binary, seam), "the release binary holds `{seam}`");
    }
    assert!(binary.len() <= BYTES_MAX, "the release binary has {} bytes", binary.len());
}

#[test]
fn the_binary_under_test_holds_the_seams() {
    let binary = std::fs::read(env!("CARGO_BIN_EXE_lychgate")).expect("because cargo built it for this test");
    assert!(holds(&binary, "LYCHGATE_TEST_PAUSE"), "the tests would run against a binary without seams");
}
