//! Pictures of simulations of parts: traces, captures, timelines, the order on a platter.

mod place;

use place::{Place, UASKIT};
use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

fn compare(arguments: &[&str]) -> Output {
    let output = Command::new(UASKIT).arg("compare").args(arguments).output().expect("uaskit starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn text(arguments: &[&str]) -> String {
    String::from_utf8(compare(arguments).stdout).expect("UTF-8")
}

/// The cells of a row of a timeline in a terminal, below the line that begins so.
fn row(text: &str, panel: &str, name: &str) -> String {
    let (_, rest) = text.split_once(panel).expect("the panel is there");
    let line =
        rest.lines().find(|line| line.trim_start().starts_with(&format!("{name} |"))).expect("the row");
    line.split('|').nth(1).expect("cells").to_owned()
}

#[test]
fn two_commands_overlap_on_uas_and_follow_each_other_on_bot() {
    let text = text(&["--timeline", "--transport", "bot,uas"]);
    let uas = row(&text, "\nuasp:", "in flight");
    assert!(uas.contains('#') && uas.contains('1') && uas.contains('2'), "{text}");
    // The second waits in the driver; its wrapper goes out when the status of the first has come.
    let bot = |name| row(&text, "\nbot:", name);
    let second = bot("command pipe").find('2').expect("the second command");
    assert!(bot("status pipe").find('1').is_some_and(|first_ends| first_ends < second), "{text}");
    for name in ["driver", "command pipe", "data-in pipe", "status pipe", "bridge", "drive"] {
        let cells = row(&text, "\nuasp:", name);
        assert!(cells.contains('1') || cells.contains('#'), "{name}: {text}");
    }
    assert!(row(&text, "\nuasp:", "data-out pipe").trim().is_empty(), "a read sends no data: {text}");
}

#[test]
fn a_write_sends_its_data_on_the_other_pipe() {
    let text = text(&["--timeline", "--transport", "uas", "--write", "--depth", "2"]);
    assert!(row(&text, "\nuasp:", "data-out pipe").contains(['1', '#']), "{text}");
    assert!(row(&text, "\nuasp:", "data-in pipe").trim().is_empty(), "{text}");
}

#[test]
fn pictures_are_files_that_say_what_they_show_and_do_not_change() {
    let folder = Place::new();
    let [one, other, platter] = ["one.svg", "other.svg", "platter.svg"].map(|name| folder.file(name));
    let printed = text(&["--timeline", &one]);
    let sentence =
        format!("Wrote {one}: a timeline (SVG) of two overlapping requests, 4K random read at QD2, over ");
    assert!(printed.starts_with(&sentence) && printed.trim_end().ends_with('.'), "{printed}");
    compare(&["--timeline", &other, "--threads", "1"]);
    let printed = text(&["--drive", "disk-7200", "--platter", &platter]);
    assert!(printed.starts_with(&format!("Wrote {platter}: the order in which ")), "{printed}");
    let [one, other, platter] = [one, other, platter].map(|file| fs::read_to_string(file).unwrap());
    assert_eq!(one, other);
    for picture in [&one, &platter] {
        for part in ["<svg", "<title", "<desc", "prefers-color-scheme: dark", "</svg>"] {
            assert!(picture.contains(part), "{part}");
        }
    }
    assert!(platter.contains("3-2-4-1") && platter.contains("1-2-3-4"));
}

#[test]
fn a_platter_is_drawn_in_a_terminal_and_flash_has_none() {
    let text = text(&["--drive", "disk-7200", "--platter"]);
    let (_, uas) = text.split_once("\nuasp:").expect("UAS is there");
    assert!(uas.contains("served 3-2-4-1") && !uas.contains("rev 2"), "{text}");
    let (_, bot) = text.split_once("\nbot:").expect("BOT is there");
    assert!(bot.contains("served 1-2-3-4") && bot.contains("rev 2"), "{text}");
    let output = Command::new(UASKIT).args(["compare", "--platter"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--drive disk-7200"));
}

#[test]
fn a_trace_ends_with_the_command_that_was_asked_for() {
    let text = text(&["--trace", "2", "--transport", "bot", "--depth", "1"]);
    assert_eq!(text.matches(" begins: READ(10), 4096 bytes").count(), 2, "{text}");
    assert!(text.contains("DATA") && text.contains("MB/s"), "{text}");
}

#[test]
fn a_trace_has_the_frames_of_the_cable_in_their_order() {
    let text = text(&["--trace", "3", "--transport", "sata,uas", "--depth", "2"]);
    let mut ways = text.split("4K random read, depth 2\n").skip(1);
    let [sata, uas] = [ways.next(), ways.next()].map(|way| way.expect("a line for each"));
    for way in [sata, uas] {
        let lines: Vec<_> = way.lines().take_while(|line| line.contains(" ns  ")).collect();
        let times: Vec<f64> =
            lines.iter().map(|line| line.trim_start().split(' ').next().unwrap().parse().unwrap()).collect();
        assert!(times.is_sorted(), "{way}");
        let frames: Vec<_> = lines
            .iter()
            .filter_map(|line| line.split_once(" sata "))
            .map(|(_, frame)| frame.trim())
            .collect();
        assert!(frames[0].starts_with("host: READ FPDMA QUEUED, tag 0, 8 sectors from "), "{frames:?}");
        for (frame, times) in [("Register, accepted", 3), ("Data, tag ", 3), ("Set Device Bits, ended ", 2)] {
            assert!(frames.iter().filter(|it| it.contains(frame)).count() >= times, "{frame}: {frames:?}");
        }
        assert_eq!(lines.iter().filter(|line| line.ends_with(" ends")).count(), 3, "{way}");
    }
    assert!(uas.contains(" host  ") && !sata.contains(" host  "), "packets are those of USB");
}

#[test]
fn a_capture_has_the_runs_of_parts() {
    let folder = Place::new();
    let file = folder.file("parts.pcapng");
    let more = ["--transport", "bot,uas", "--depth", "2", "--commands", "20", "--capture", &file];
    let output = compare(&more);
    assert!(String::from_utf8_lossy(&output.stderr).contains(" records"));
    let bytes = fs::read(&file).unwrap();
    assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    let holds = |what: &[u8]| bytes.windows(what.len()).any(|window| window == what);
    assert!(holds(b"USBC") && holds(b"USBS") && holds(b"uasp 2"), "wrappers, and the names of runs");
}

#[test]
fn as_many_virtual_seconds_are_measured_as_are_asked_for() {
    let of = |seconds| {
        let text = text(&["--depth", "4", "--transport", "uas", "--seconds", seconds, "--json"]);
        let record: Value = serde_json::from_str(&text).expect("JSON");
        let result = &record["rows"][0]["results"]["uasp"];
        let number = |value: &Value| value.as_f64().expect("a number");
        [&result["elapsed_ns"], &result["power"]["peak_window_ns"], &result["power"]["mean_watts"]]
            .map(number)
    };
    let [elapsed, window, watts] = of("0.05");
    assert!(
        (5e7..5.1e7).contains(&elapsed) && window == elapsed && watts > 1.0,
        "{elapsed} {window} {watts}"
    );
    let [elapsed, window, _] = of("1.2");
    assert!((1.2e9..1.21e9).contains(&elapsed) && window == 1e9, "{elapsed} {window}");
}
