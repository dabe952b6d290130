//! Code that the tests of the program share: a directory of a test's own, and the program itself.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The program under test.
pub(crate) const UASKIT: &str = env!("CARGO_BIN_EXE_uaskit");

/// A directory of a test's own, which goes when this is dropped.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("uaskit-cli-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory can be made");
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    #[allow(dead_code, reason = "not every file of tests serves a drive")]
    pub(crate) fn unix(&self, name: &str) -> String {
        format!("unix:{}", self.file(name))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
