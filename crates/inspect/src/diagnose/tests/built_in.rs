//! `usb-storage` built into the kernel, which does not read modprobe's files.

use super::lines::*;
use super::*;

const FILE: &str = "/etc/modprobe.d/my.conf";

#[test]
fn no_line_for_modprobe_is_advised_where_none_is_read() {
    let lines = BOTH_BUILT_IN.to_owned() + &quirks("1:2:u");
    let diagnosis = diagnosed("3-3", &lines);
    let expected = [
        ("on the kernel command line", "usb-storage.quirks=1209:0001:u"),
        (
            "or until the next boot",
            "echo 1:2:u,1209:0001:u | sudo tee /sys/module/usb_storage/parameters/quirks",
        ),
        ("in each case, then", "unplug the drive and plug it in again"),
    ];
    assert_eq!(steps_of(&diagnosis, "Keep it off UAS"), expected);
    assert!(diagnosis.advice[0].cautions.is_empty(), "{diagnosis:#?}");
    // An existing one is not merged, and is reported.
    let file = format!("{FILE} = options usb-storage quirks=3:4:u\n");
    let diagnosis = diagnosed("3-3", &(lines + &file));
    assert_eq!(steps_of(&diagnosis, "Keep it off UAS"), expected);
    assert_eq!(
        diagnosis.advice[0].cautions,
        [format!(
            "{FILE} has such a line, `options usb-storage quirks=3:4:u`, which is not read: usb-storage is built into this kernel"
        )]
    );
}

#[test]
fn an_entry_that_is_not_read_is_reported_and_sets_nothing() {
    let file = format!("{FILE} = options usb-storage quirks=1209:0001:u\n");
    let judged = |lines: &str| {
        let diagnosis = diagnosed("3-3", &(BOTH_BUILT_IN.to_owned() + lines));
        let check = check_of(&diagnosis, CheckKind::Settings);
        let places: Vec<_> = check.readings.iter().map(|reading| reading.place.clone()).collect();
        (check.health, check.because.clone(), places)
    };
    let (health, because, places) = judged(&(quirks("") + &file));
    assert_eq!((health, places), (Health::Concern, vec![FILE.to_owned()]));
    assert!(because.starts_with("modprobe files are ignored, since usb-storage is built into"), "{because}");
    // The command line is read, and says the same.
    let word = "/proc/cmdline = usb-storage.quirks=1209:0001:u\n";
    let (health, because, _) = judged(&(quirks("1209:0001:u") + &file + word));
    assert_eq!(
        (health, because.as_str()),
        (Health::Good, "the same is in force now and after the next boot")
    );
    // In force by hand alone, whatever the file says.
    let (health, because, _) = judged(&(quirks("1209:0001:u") + &file));
    assert_eq!(
        (health, because.as_str()),
        (Health::Concern, "in force: \"u\"; after the next boot: no entry")
    );
}

#[test]
fn an_entry_is_removed_where_it_is_read() {
    let lines = BOTH_BUILT_IN.to_owned()
        + &quirks("1209:0001:u")
        + "/proc/cmdline = usb-storage.quirks=1209:0001:u\n"
        + &format!("{FILE} = options usb-storage quirks=1209:0001:u\n")
        + &bound("usb-storage");
    let diagnosis = diagnosed("3-3", &lines);
    assert_eq!(
        steps_of(&diagnosis, "Use UAS: remove the entry"),
        [
            ("on the kernel command line", "take out: usb-storage.quirks=1209:0001:u"),
            ("until the next boot", "echo '' | sudo tee /sys/module/usb_storage/parameters/quirks"),
            ("in each case, then", "unplug the drive and plug it in again"),
        ]
    );
    let advice = &diagnosis.judgement(Rule::NotIgnored).expect("judged").advice[0];
    assert!(advice.cautions[0].contains("which is not read"), "{advice:#?}");
}

#[test]
fn of_two_drivers_that_are_built_in_uas_is_asked_first() {
    let vl817 = ids(0x2109, 0x0715) + &at("bcdDevice", "9999") + &unbound();
    let judged = |lines: &str| {
        let diagnosis = diagnosed("3-3", &(vl817.clone() + lines));
        let judgement = diagnosis.judgement(Rule::NotIgnored).expect("judged");
        let reason = judgement.because.split("; ").nth(1).unwrap_or_default().to_owned();
        (judgement.verdict, reason)
    };
    assert_eq!(
        judged(BOTH_BUILT_IN),
        (
            Verdict::Met,
            "uas does not apply this table and is probed first, since both drivers are built in".into()
        )
    );
    let modules =
        (Verdict::Refused, "usb-storage is probed before uas, which does not apply this table".into());
    assert_eq!(judged(""), modules);
    let storage_alone = BOTH_BUILT_IN.replace("UAS=y", "UAS=m");
    assert_eq!(judged(&storage_alone), modules);
}
