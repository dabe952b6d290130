//! The kernel's log, and what in it a healthy drive never causes.

use std::fmt;

/// Lines of `dmesg`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLog {
    text: String,
}

impl KernelLog {
    pub(super) fn new(text: String) -> Self {
        Self { text }
    }

    /// Its lines, oldest first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines()
    }

    /// Whether a line contains `words`.
    pub fn contains(&self, words: &str) -> bool {
        self.text.contains(words)
    }

    /// The lines in which USB, SCSI, block layer or file system complain: errors, resets, time-outs, refusals.
    pub fn complaints(&self) -> Vec<&str> {
        self.lines().filter(|line| concerns_disks(line) && complains(line)).collect()
    }
}

impl fmt::Display for KernelLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether the line is about the way from the file system to the bus. Warnings of the kernel proper count.
fn concerns_disks(line: &str) -> bool {
    const WORDS: &[&str] = &[
        "usb",
        "uas",
        "xhci",
        "ehci",
        "scsi",
        "sd ",
        "sd-",
        "sg ",
        "I/O",
        "blk",
        "EXT4",
        "JBD2",
        "Buffer",
        "BUG",
        "WARNING",
        "Call Trace",
        "task ",
    ];
    WORDS.iter().any(|word| line.contains(word))
}

fn complains(line: &str) -> bool {
    const WORDS: &[&str] = &[
        "error",
        "fail",
        "reset ",
        "abort",
        "timed out",
        "timeout",
        "unexpected",
        "invalid",
        "unable",
        "cannot",
        "can't",
        "not support",
        "ignor",
        "bug:",
        "warning",
        "call trace",
        "blocked for",
        "disabling",
        "offline",
        "sense key",
        "no caching",
        "assuming",
    ];
    /// A drive reports its power-on to each new host; the other comes from QEMU's root hub.
    const INNOCENT: &[&str] = &["power-on or device reset occurred", "algorithms for lpm for this host"];
    let line = line.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    has(WORDS) && !has(INNOCENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(line: &str) -> usize {
        KernelLog::new(line.into()).complaints().len()
    }

    #[test]
    fn resets_errors_and_guesses_are_complaints() {
        for line in [
            "[    9.1] usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd",
            "[    9.1] sd 0:0:0:0: [sda] tag#3 uas_eh_abort_handler 0 uas-tag 4 inflight: CMD IN",
            "[    9.1] blk_update_request: I/O error, dev sda, sector 8",
            "[    9.1] sd 0:0:0:0: [sda] Assuming drive cache: write through",
            "[    9.1] scsi host0: uas: unexpected read rdy",
            "[    9.1] EXT4-fs error (device sda): ext4_find_entry",
        ] {
            assert_eq!(complaints(line), 1, "{line}");
        }
    }

    #[test]
    fn the_arrival_of_a_disk_is_no_complaint() {
        for line in [
            "[    2.8] usb 2-1: new SuperSpeed USB device number 2 using xhci_hcd",
            "[    2.8] scsi host0: uas",
            "[    2.8] sd 0:0:0:0: [sda] Write cache: enabled, read cache: enabled, doesn't support DPO or FUA",
            "[    2.8] sd 0:0:0:0: [sda] Attached SCSI disk",
            "[    2.8] sd 0:0:0:0: Power-on or device reset occurred",
            "[    2.7] usb usb3: We don't know the algorithms for LPM for this host, disabling LPM.",
            "[    0.1] RAS: Correctable Errors collector initialized.",
        ] {
            assert_eq!(complaints(line), 0, "{line}");
        }
    }
}
