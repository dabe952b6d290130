//! A row of `--raw`: both transports at one queue depth.

use study::ceiling::Run;

/// Both transports at one queue depth.
pub(super) struct Row {
    pub(super) depth: u16,
    pub(super) bot: Run,
    pub(super) uas: Run,
}
