//! Job files of fio and configurations of IOMeter: every file is understood or refused, and what is understood is within
//! the limits.
#![no_main]

use units::{BlockCount, BlockSize};
use workload::{self, Accesses, DEPTH_MAX, JOBS_MAX, REQUEST_BYTES_MAX};

libfuzzer_sys::fuzz_target!(|text: &str| {
    for parsed in [workload::fio("file", text), workload::icf("file", text)] {
        let Ok(parsed) = parsed else { continue };
        assert!((1..=JOBS_MAX).contains(&parsed.jobs.len()));
        for job in &parsed.jobs {
            assert!((1..=DEPTH_MAX).contains(&job.depth) && job.bytes_max() <= REQUEST_BYTES_MAX);
            if let Ok(mut accesses) = Accesses::new(job, BlockSize::B512, BlockCount(100_000), 1) {
                let part = accesses.extent();
                for _ in 0..4 {
                    let extent = accesses.draw().extent;
                    assert!(
                        extent.lba >= part.lba
                            && extent.lba.0 + extent.blocks.0 <= part.lba.0 + part.blocks.0
                    );
                }
            }
        }
    }
});
