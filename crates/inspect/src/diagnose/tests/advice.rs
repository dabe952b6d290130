//! The text of each advice, and what it keeps.

use super::lines::*;
use super::*;

#[test]
fn the_quirk_line_keeps_the_other_entries_and_the_other_flags() {
    let lines = ids(0x357d, 0x7788)
        + &quirks("1:2:u")
        + "/etc/modprobe.d/my.conf = options usb-storage quirks=1:2:u\n"
        + &bound("usb-storage");
    let diagnosis = diagnosed("3-3", &lines);
    let advice = &diagnosis.judgement(Rule::NotIgnored).expect("judged").advice[0];
    let steps: Vec<&str> = advice.steps.iter().map(|step| step.line.as_str()).collect();
    assert_eq!(
        steps[..3],
        [
            "usb-storage.quirks=1:2:u,357d:7788:f",
            "options usb-storage quirks=1:2:u,357d:7788:f",
            "echo 1:2:u,357d:7788:f | sudo tee /sys/module/usb_storage/parameters/quirks",
        ]
    );
    let back = &advice.back.last().expect("a way back").line;
    assert_eq!(back, "echo 1:2:u | sudo tee /sys/module/usb_storage/parameters/quirks");
}

#[test]
fn a_bridge_that_usb_storage_alone_keeps_off_uas_is_given_to_it_by_an_empty_entry() {
    let lines = ids(0x2109, 0x0715) + &at("bcdDevice", "9999") + &bound("usb-storage");
    let diagnosis = diagnosed("3-3", &lines);
    let judgement = diagnosis.judgement(Rule::NotIgnored).expect("judged");
    assert_eq!(
        judgement.because,
        "usb-storage's built-in quirk table disables UAS for 2109:0715; usb-storage is probed before uas, which does not apply this table"
    );
    assert_eq!(judgement.advice[0].purpose, "Use UAS nevertheless");
    assert_eq!(judgement.advice[0].steps[0].line, "usb-storage.quirks=2109:0715:");
    assert!(judgement.advice[0].cautions.iter().any(|caution| caution.contains("have a backup")));
}

#[test]
fn a_drive_without_driver_is_probed_again_or_its_driver_loaded() {
    let first_step = |lines: String| {
        let diagnosis = diagnosed("3-3", &(ids(0x357d, 0x7788) + &unbound() + &lines));
        assert!(!diagnosis.agrees());
        diagnosis.advice[0].steps[0].line.clone()
    };
    assert_eq!(first_step(String::new()), "echo 3-3:1.0 | sudo tee /sys/bus/usb/drivers_probe");
    assert_eq!(first_step(USB_STORAGE_GONE.into()), "sudo modprobe usb-storage");
}

#[test]
fn the_users_own_entry_is_removed_where_it_is() {
    let lines = quirks("1209:0001:u")
        + "/proc/cmdline = quiet usb-storage.quirks=1209:0001:u\n"
        + "/etc/modprobe.d/my.conf = options usb-storage quirks=1:2:u,1209:0001:u\n"
        + &bound("usb-storage");
    let diagnosis = diagnosed("3-3", &lines);
    let advice = &diagnosis.judgement(Rule::NotIgnored).expect("judged").advice[0];
    let steps: Vec<(&str, &str)> =
        advice.steps.iter().map(|step| (step.place.as_str(), step.line.as_str())).collect();
    assert_eq!(
        steps[..3],
        [
            ("/etc/modprobe.d/my.conf", "options usb-storage quirks=1:2:u"),
            ("on the kernel command line", "take out: usb-storage.quirks=1209:0001:u"),
            ("until the next boot", "echo '' | sudo tee /sys/module/usb_storage/parameters/quirks"),
        ]
    );
}

#[test]
fn a_value_that_the_kernel_would_refuse_is_reported() {
    let long = (0..10).map(|number| format!("1209:1{number:03}:u")).collect::<Vec<_>>().join(",");
    let diagnosis = diagnosed("3-3", &quirks(&long));
    let cautions = &diagnosis.advice[0].cautions;
    assert!(cautions.iter().any(|caution| caution.contains("the kernel takes 127")), "{cautions:?}");
}

#[test]
fn lines_that_last_have_what_lasts_and_the_other_what_is_in_force() {
    let lines = |files: &str| {
        let diagnosis = diagnosed("3-3", &(quirks("3:4:f,1209:0001:f") + files));
        let advice = &diagnosis.advice[0];
        let lines = advice.steps[..3].iter().chain(&advice.back).map(|step| step.line.clone());
        lines.collect::<Vec<_>>()
    };
    let now = "echo 3:4:f,1209:0001:fu | sudo tee /sys/module/usb_storage/parameters/quirks";
    let before = "echo 3:4:f,1209:0001:f | sudo tee /sys/module/usb_storage/parameters/quirks";
    let file = "/etc/modprobe.d/q.conf = options usb-storage quirks=1:2:u,1209:0001:g\n";
    assert_eq!(
        lines(file),
        [
            "usb-storage.quirks=1:2:u,1209:0001:gu",
            "options usb-storage quirks=1:2:u,1209:0001:gu",
            now,
            "remove the parameter",
            "remove the line",
            before,
        ]
    );
    // The command line's word wins over the file's, and the last of several words.
    let words = "/proc/cmdline = usb-storage.quirks=7:8:f usb-storage.quirks=5:6:u\n";
    assert_eq!(
        lines(&(file.to_owned() + words)),
        [
            "usb-storage.quirks=5:6:u,1209:0001:fu",
            "options usb-storage quirks=5:6:u,1209:0001:fu",
            now,
            "usb-storage.quirks=5:6:u",
            "remove the line",
            before,
        ]
    );
    assert_eq!(
        lines("")[..2],
        ["usb-storage.quirks=1209:0001:fu", "options usb-storage quirks=1209:0001:fu"]
    );
}

#[test]
fn an_entry_is_removed_from_each_list() {
    let lines = quirks("3:4:f,1209:0001:u")
        + "/etc/modprobe.d/q.conf = options usb-storage quirks=1:2:u,1209:0001:u\n"
        + &bound("usb-storage");
    let diagnosis = diagnosed("3-3", &lines);
    let advice = &diagnosis.judgement(Rule::NotIgnored).expect("judged").advice[0];
    let advised = advice.steps[..2].iter().chain(&advice.back).map(|step| step.line.as_str());
    assert_eq!(
        advised.collect::<Vec<_>>(),
        [
            "options usb-storage quirks=1:2:u",
            "echo 3:4:f | sudo tee /sys/module/usb_storage/parameters/quirks",
            "options usb-storage quirks=1:2:u,1209:0001:u",
            "echo 3:4:f,1209:0001:u | sudo tee /sys/module/usb_storage/parameters/quirks",
        ]
    );
}

#[test]
fn an_entry_that_says_u_alone_goes_so_that_what_is_built_in_comes_back() {
    let advised = |entry: &str| {
        let lines = ids(0x152d, 0x0583) + &kernel("6.6.0") + &quirks(entry) + &bound("usb-storage");
        let diagnosis = diagnosed("3-3", &lines);
        let advice = diagnosis.judgement(Rule::NotIgnored).expect("judged").advice[0].clone();
        (advice.purpose, advice.steps[0].line.clone())
    };
    let taken = "echo '' | sudo tee /sys/module/usb_storage/parameters/quirks";
    assert_eq!(advised("152d:0583:u"), ("Use UAS: remove the entry".into(), taken.into()));
    let entry = "usb-storage.quirks=152d:0583:g";
    assert_eq!(advised("152d:0583:gu"), ("Use UAS nevertheless".into(), entry.into()));
}

#[test]
fn an_entry_with_the_letter_i_is_removed() {
    let entry = "/etc/modprobe.d/my.conf = options usb-storage quirks=46f4:0001:i\n";
    let diagnosis = diagnosed("3-2", &(quirks("1:2:u,46f4:0001:i") + entry + BOT_ALONE));
    assert_eq!(
        steps_of(&diagnosis, "Let usb-storage bind")[..2],
        [
            ("/etc/modprobe.d/my.conf", "take out: options usb-storage quirks=46f4:0001:i"),
            ("until the next boot", "echo 1:2:u | sudo tee /sys/module/usb_storage/parameters/quirks"),
        ]
    );
}

#[test]
fn of_an_entry_with_other_letters_the_one_that_leaves_the_drive_alone_is_taken_out() {
    let diagnosis = diagnosed("3-3", &(quirks("1209:0001:iu") + &unbound()));
    let line = |purpose| steps_of(&diagnosis, purpose)[0];
    assert_eq!(
        line("Let usb-storage bind"),
        ("on the kernel command line", "usb-storage.quirks=1209:0001:u")
    );
    assert_eq!(line("Use UAS: remove the entry").0, "until the next boot");
}

#[test]
fn a_line_that_keeps_a_drive_off_uas_has_usb_storage_take_it() {
    let absent = quirks("1209:0001:fi") + &uas_absent() + &unbound();
    for (lines, purpose, at) in
        [(quirks("1209:0001:fi"), "Keep it off UAS", 0), (absent, "Get the driver", 2)]
    {
        let diagnosis = diagnosed("3-3", &lines);
        assert_eq!(steps_of(&diagnosis, purpose)[at].1, "usb-storage.quirks=1209:0001:fu");
    }
}

#[test]
fn a_line_that_was_in_the_file_is_put_back() {
    let file = "/etc/modprobe.d/uaskit.conf = options usb-storage delay_use=1 quirks=174c:55aa:u\n";
    let diagnosis = diagnosed("3-3", &(quirks("174c:55aa:u") + file));
    let advice = &diagnosis.advice[0];
    assert_eq!(advice.steps[1].line, "options usb-storage delay_use=1 quirks=174c:55aa:u,1209:0001:u");
    assert_eq!(advice.back[1].line, "options usb-storage delay_use=1 quirks=174c:55aa:u");
    let lines = advice.steps.iter().chain(&advice.back).map(|step| &step.line);
    assert!(lines.clone().all(|line| !line.contains("sudo rm")), "{:?}", lines.collect::<Vec<_>>());
}

#[test]
fn a_file_that_modprobe_reads_later_is_reported() {
    let cautions = |path: &str| {
        let file = format!("{path} = options usb-storage quirks=174c:55aa:u\n");
        diagnosed("3-3", &(quirks("174c:55aa:u") + &file)).advice[0].cautions.join("; ")
    };
    for later in ["/etc/modprobe.d/zz.conf", "/usr/lib/modprobe.d/zz.conf"] {
        assert!(cautions(later).contains(&format!("{later} is read after")), "{}", cautions(later));
    }
    // Lower in the order of names, although in a later directory.
    assert_eq!(cautions("/usr/lib/modprobe.d/aa.conf"), "");
    assert_eq!(cautions("/etc/modprobe.d/uaskit.conf"), "");
}

#[test]
fn trim_is_sent_by_a_rule_of_udev_that_is_for_this_drive_alone() {
    let unit = format!("{DRIVE}/3-3:1.0/host3/target3:0:0/3:0:0:0");
    let lines = ids(0x04e8, 0x61f5) + &format!("{unit}/scsi_disk/3:0:0:0/provisioning_mode = full\n");
    let diagnosis = diagnosed("3-3", &lines);
    let advice = check_of(&diagnosis, CheckKind::Trim).advice.first().expect("what to do");
    let steps: Vec<_> = advice.steps.iter().map(|step| (step.place.as_str(), step.line.as_str())).collect();
    assert_eq!(
        steps,
        [
            (
                "in /etc/udev/rules.d/70-uaskit-trim.rules",
                r#"ACTION=="add|change", SUBSYSTEM=="scsi_disk", ATTRS{idVendor}=="04e8", ATTRS{idProduct}=="61f5", ATTR{provisioning_mode}="unmap""#,
            ),
            (
                "then",
                "sudo udevadm control --reload && sudo udevadm trigger --subsystem-match=scsi_disk --action=change",
            ),
        ]
    );
    let back: Vec<_> = advice.back.iter().map(|step| step.line.as_str()).collect();
    assert_eq!(back, ["sudo rm /etc/udev/rules.d/70-uaskit-trim.rules"]);
}

#[test]
fn trim_is_sent_by_the_command_that_the_drive_takes() {
    let unit = format!("{DRIVE}/3-3:1.0/host3/target3:0:0/3:0:0:0");
    let advised = |mode: &str, pages: &str| {
        let pages = pages.replace("vpd", &format!("{unit}/vpd"));
        let lines = format!("{unit}/scsi_disk/3:0:0:0/provisioning_mode = {mode}\n{pages}");
        let diagnosis = diagnosed("3-3", &lines);
        let advice = &check_of(&diagnosis, CheckKind::Trim).advice;
        let rule = advice.last().expect("what to do");
        let (_, mode) = rule.steps[0].line.rsplit_once("ATTR{provisioning_mode}=").expect("a mode");
        (rule.purpose.clone(), mode.to_owned(), advice.len())
    };
    let of = |purpose: &str, mode: &str, advice: usize| (purpose.to_owned(), format!("\"{mode}\""), advice);
    // LBPU, LBPWS and LBPWS10, and no UNMAP LBA count.
    let no_count = "vpd_pgb0 -\n";
    let [ws16, ws10, both] =
        ["40", "20", "60"].map(|bits| format!("{no_count}vpd_pgb2 : 00b2000400{bits}0000\n"));
    assert_eq!(advised("full", &ws16), of("Send TRIM as WRITE SAME (16)", "writesame_16", 1));
    assert_eq!(advised("full", &both), of("Send TRIM as WRITE SAME (16)", "writesame_16", 1));
    assert_eq!(advised("full", &ws10), of("Send TRIM as WRITE SAME (10)", "writesame_10", 1));
    assert_eq!(advised("disabled", &ws10), of("Send TRIM as WRITE SAME (10)", "writesame_10", 1));
    // LBPU without a count is a sign of UNMAP where there is no other command.
    let unmap = format!("{no_count}vpd_pgb2 : 00b2000400800000\n");
    assert_eq!(advised("full", &unmap), of("Send TRIM as UNMAP", "unmap", 1));
    assert_eq!(advised("disabled", ""), of("Send TRIM as UNMAP", "unmap", 2));
}

#[test]
fn what_the_kernel_alone_says_is_answered_by_an_entry_or_by_plugging_in() {
    let said =
        log("usb 3-3: UAS is ignored for this device, using usb-storage instead") + &bound("usb-storage");
    let advised = |lines: &str| {
        let diagnosis = diagnosed("3-3", &(said.clone() + lines));
        let judgement = diagnosis.judgement(Rule::NotIgnored).expect("judged").clone();
        (judgement.because, judgement.advice[0].steps[0].line.clone())
    };
    let (because, line) = advised("");
    assert!(
        because.starts_with("the kernel logged that it ignores UAS for this device; no known row does"),
        "{because}"
    );
    assert_eq!(line, "usb-storage.quirks=1209:0001:");
    let (because, line) = advised(&quirks("1209:0001:f"));
    assert!(because.ends_with("usb-storage.quirks= has no letter u for it now"), "{because}");
    assert_eq!(line, "unplug the drive and plug it in again");
}

#[test]
fn the_file_that_counts_until_the_next_boot_is_written_when_it_is_there() {
    let line = |lines: &str| {
        let diagnosis = diagnosed("3-3", &(ids(0x357d, 0x7788) + &both_loadable() + lines));
        let steps = steps_of(&diagnosis, "Use UAS nevertheless");
        let advice = &diagnosis.judgement(Rule::NotIgnored).expect("judged").advice[0];
        let until = |place: &str| place == "or until the next boot";
        let back = advice.back.iter().filter(|step| until(&step.place)).count();
        let found = steps.iter().find(|(place, _)| until(place)).map(|(_, line)| (*line).to_owned());
        assert_eq!(back, usize::from(found.is_some()), "{advice:#?}");
        assert_eq!(steps.last().map(|step| step.0), Some("in each case, then"));
        found
    };
    let write = "echo 357d:7788:f | sudo tee /sys/module/usb_storage/parameters/quirks".to_owned();
    assert_eq!(line(""), Some(format!("sudo modprobe usb-storage && {write}")));
    // There is none to be loaded, or it may not be.
    assert_eq!(line(&format!("{INDEX} = kernel/drivers/usb/storage/uas.ko.xz:\n")), None);
    assert_eq!(line("/etc/modprobe.d/cis.conf = install usb-storage /bin/false\n"), None);
    assert_eq!(line("/proc/cmdline = module_blacklist=usb_storage\n"), None);
    assert_eq!(line("/proc/config.gz = # CONFIG_USB_STORAGE is not set\n"), None);
    // It is there.
    let loaded = format!("/sys/module/usb_storage/initstate = live\n{}", quirks(""));
    assert_eq!(line(&loaded), Some(write));
}

#[test]
fn an_entry_is_removed_at_once_where_there_is_one() {
    let entry = "/etc/modprobe.d/my.conf = options usb-storage quirks=1209:0001:u,1:2:u\n";
    let steps = |lines: &str| {
        let diagnosis = diagnosed("3-3", &(both_loadable() + entry + lines));
        let steps = steps_of(&diagnosis, "Use UAS: remove the entry").into_iter();
        steps.map(|(place, line)| format!("{place}: {line}")).collect::<Vec<_>>()
    };
    let file = "/etc/modprobe.d/my.conf: options usb-storage quirks=1:2:u";
    let again = "in each case, then: unplug the drive and plug it in again";
    let write = "until the next boot: sudo modprobe usb-storage && echo 1:2:u | sudo tee /sys/module/usb_storage/parameters/quirks";
    assert_eq!(steps(""), [file, write, again]);
    assert_eq!(steps("/etc/modprobe.d/cis.conf = blacklist usb-storage\n"), [file, again]);
}
