//! The built-in parts.
//!
//! A part is listed by name alone. Always true: kind and name are unique.

use super::kind::PartKind;

/// PartKind, name, text.
macro_rules! built_in {
    ($($kind:ident $folder:literal: $($name:literal)+;)+) => {
        &[$($((PartKind::$kind, $name, include_str!(concat!("../../parts/", $folder, "/", $name, ".toml"))),)+)+]
    };
}

/// PartKind, name, text.
pub(super) const BUILT_IN: &[(PartKind, &str, &str)] = built_in! {
    Bridge "bridges": "apricorn" "asm1051" "asm1051e" "asm1053e" "asm1153" "generic" "generic-bot"
        "jms539" "jms567" "jms580" "upd720230";
    Controller "controllers": "a75" "asm1042" "dwc-otg" "ehci-intel" "ej168" "intel-7-series" "upd720200"
        "upd720201" "upd720202" "vl805";
    Driver "drivers": "fnet-xfast" "linux-uas" "linux-usb-storage" "mcci-bot" "mcci-uasp"
        "renesas-uasp" "sata-native" "turbo" "windows7-usbstor"
        "windows7-usbstor-hotfix" "windows8-uasp" "windows8-usbstor" "windows8-usbstor-asmedia";
    Hdd "hdd": "disk-5400" "disk-7200";
    Host "hosts": "desktop-2012" "raspberry-pi-4";
    Hub "hubs": "superspeed-4" "superspeed-7-slow";
    Link "links": "full" "gen1" "gen2" "gen2x2" "high";
    Power "power": "desktop-2012" "raspberry-pi-4";
    Sata "sata": "ahci-3g" "ahci-6g";
    Ssd "ssd": "dramless-240" "m4-256" "vertex3-20-240" "vertex3-240" "vertex3-maxiops-128";
};
