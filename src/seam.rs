//! Test seams: pause points. Compiled out unless the `test-seams` feature is on.

/// Stops here until the test lets the call go on, if the test asked for this point.
///
/// `LYCHGATE_TEST_PAUSE` lists the points to stop at, separated by commas; the folder
/// `LYCHGATE_TEST_PAUSE_DIR` is where this call says that it has `NAME.reached` and waits for `NAME.go`.
#[cfg(feature = "test-seams")]
#[allow(clippy::disallowed_methods, reason = "a seam is outside the layers by design")]
pub fn pause(point: &str) {
    let Ok(points) = std::env::var("LYCHGATE_TEST_PAUSE") else { return };
    let Ok(dir) = std::env::var("LYCHGATE_TEST_PAUSE_DIR") else { return };
    if !points.split(',').any(|wanted| wanted == point) {
        return;
    }
    let dir = std::path::Path::new(&dir);
    if std::fs::write(dir.join(format!("{point}.reached")), b"").is_err() {
        return;
    }
    let go = dir.join(format!("{point}.go"));
    while !go.exists() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    // A test that leads a call through one point several times gives its leave anew each time.
    if std::env::var("LYCHGATE_TEST_PAUSE_EACH").is_ok() {
        drop(std::fs::remove_file(&go));
    }
}

/// Does nothing: the seams are compiled out.
#[cfg(not(feature = "test-seams"))]
#[inline(always)]
pub fn pause(_point: &str) {}
