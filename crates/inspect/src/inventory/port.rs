//! The port that a device is plugged into: `port` of a device leads to it.

use crate::tree::Tree;

/// A port of a hub, as the kernel knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its directory in sysfs.
    pub path: String,
    /// The port of the other speed in the same socket, if firmware describes it.
    pub peer: Option<String>,
    /// How often it has drawn too much.
    pub over_currents: Option<u64>,
}

impl Port {
    pub(super) fn read(tree: &Tree, link: &str) -> Option<Self> {
        let path = tree.link(link)?;
        Some(Self {
            peer: tree.link_name(&format!("{path}/peer")),
            over_currents: tree.number(&format!("{path}/over_current_count")),
            path,
        })
    }
}
