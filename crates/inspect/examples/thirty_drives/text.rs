//! The text of a recorded machine with thirty drives behind hubs.
//!
//! Every drive is a copy of the one in a recorded guest that has the most to read: two settings, a disk, its pages.

/// Drives of the machine.
pub(crate) const DRIVES: usize = 30;

const GUEST: &str = include_str!("../../tests/trees/guest.tree");

/// The machine, in the format of recorded trees.
pub(crate) fn text() -> String {
    let copies = (1..=DRIVES).map(|drive| {
        // Five drives a hub: 3-3 is a hub here, too.
        let port = format!("3-{}.{}", 4 + (drive - 1) / 5, 1 + (drive - 1) % 5);
        let lines = GUEST.lines().filter(|line| line.contains("/3-3"));
        let text: String = lines.map(|line| format!("{}\n", line.replace("3-3", &port))).collect();
        // Each copy needs its own SCSI host number.
        text.replace("host3", &format!("host{}", 100 + drive)).replace("sdc", &format!("sd{drive}"))
    });
    format!("{GUEST}\n{}", copies.collect::<String>())
}
