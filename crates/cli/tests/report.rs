//! Results as pages: what is in them, and that nothing in them is from elsewhere.

mod place;

use place::{Place, UASKIT};
use std::fs;
use std::process::Command;

/// The page of a command.
fn page(arguments: &[&str]) -> String {
    let folder = Place::new();
    let file = folder.file("page.html");
    let output =
        Command::new(UASKIT).args(arguments).args(["--report", &file]).output().expect("uaskit starts");
    assert!(String::from_utf8_lossy(&output.stderr).contains("report: "), "{output:?}");
    fs::read_to_string(file).expect("a page in UTF-8")
}

fn holds(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_comparison_has_charts_parts_constants_seeds_and_the_command() {
    let asked = ["compare", "--transport", "bot,uas", "--depth", "1,4", "--commands", "300"];
    let page = page(&asked);
    holds(
        &page,
        &[
            "<h2>Findings</h2>",
            "4K random read: MB/s",
            "4K random read: IOPS",
            "Latency percentiles",
            "Distribution",
        ],
    );
    holds(
        &page,
        &[
            "Where the time goes",
            "Commands on the four pipes",
            "Energy per 10⁹ bytes",
            "Constants of the parts",
            "1 to 5",
            "commands per request",
            "data-places=",
        ],
    );
    holds(
        &page,
        &["uaskit compare --transport bot,uas --depth 1,4 --commands 300 --report", "class=\"whisker"],
    );
    assert!(page.len() < 1_500_000 && !page.contains("https:"), "{} bytes", page.len());
}

#[test]
fn link_and_protocols_alone_are_a_page() {
    let page =
        page(&["compare", "--raw", "--depth", "1,8", "--commands", "200", "--drives", "2", "--hubs", "1"]);
    holds(
        &page,
        &[
            "Bytes: MB/s",
            "I/Os: IOPS",
            "Mean latency",
            "Stages of a command",
            "MB/s of each drive",
            "Digests",
        ],
    );
    assert!(page.len() < 1_500_000 && !page.contains("https:"), "{} bytes", page.len());
}

#[test]
fn a_comparison_of_disks_has_their_order() {
    let page = page(&[
        "compare",
        "--drive",
        "disk-7200",
        "--transport",
        "bot,uas",
        "--depth",
        "4",
        "--commands",
        "50",
    ]);
    holds(
        &page,
        &[
            "with drive disk-7200</h1>",
            "<dt>setup</dt><dd>myce, with drive disk-7200</dd>",
            "latency, ms",
            "mean time of a command, ms",
        ],
    );
    holds(&page, &["Order of service of four reads on one track", "<td>3-2-4-1</td>", "<td>1-2-3-4</td>"]);
}

#[test]
fn where_the_time_goes_has_pieces_of_requests_and_each_part_has_one_colour() {
    let page = page(&[
        "compare",
        "--transport",
        "sata,turbo,uas",
        "--block",
        "2M",
        "--depth",
        "1",
        "--commands",
        "10",
    ]);
    holds(
        &page,
        &[
            "With native SATA (sata), cable time counts as drive time.",
            "Commands per request: 2 on sata, 32 on turbo, 10 on uasp.",
            "turbo, QD1, 32 per request",
        ],
    );
    // The bridge has one colour where time goes and where energy goes.
    let hue = |section: &str| {
        let section = page.split(&format!("<h2>{section}</h2>")).nth(1).expect("a section");
        let before = section.split("</svg>bridge</button>").next().expect("a legend");
        let sample = before.rsplit("class=\"key ").next().expect("a sample");
        sample.split('"').next().expect("a class").to_owned()
    };
    assert_eq!((hue("Where the time goes"), hue("Where the energy goes")), ("s12".into(), "s12".into()));
}

#[test]
fn a_validation_says_what_fails_and_has_a_digest() {
    let page = page(&["validate", "--only", "P065"]);
    holds(
        &page,
        &[
            "<li>The only decidable claim fails: P065.</li>",
            "<li>P065 fails, Fnet XFast USB, Turbo,",
            "where more than",
            "<dt>digest</dt>",
            "<dt>seed</dt><dd>1</dd>",
        ],
    );
}

#[test]
fn a_validation_has_figures_with_their_sources() {
    let page = page(&["validate", "--only", "myce"]);
    holds(
        &page,
        &["simulated, MB/s", "Myce, Beyond USB3 with UASP (2013)", "Claims and shapes", "data-scale=\"log\""],
    );
}

#[test]
fn a_benchmark_has_its_rounds_and_its_machine() {
    let flags = [
        "--rw",
        "randread",
        "--depth",
        "1,4",
        "--seconds",
        "0.05",
        "--rounds",
        "3",
        "--size",
        "16M",
        "--quiet",
    ];
    let page = page(&[&["bench", "--virtual", "--transport", "all"], flags.as_slice()].concat());
    holds(
        &page,
        &[
            "4K random read: IOPS",
            "Latency percentiles",
            "One row per job and transport",
            "<dt>kernel</dt>",
            "class=\"whisker",
        ],
    );
}

#[test]
fn a_name_from_outside_is_escaped() {
    let folder = Place::new();
    let hostile = folder.file("<b onclick=x>.img");
    fs::write(&hostile, vec![0; 1 << 20]).expect("a file");
    let page = page(&[
        "bench",
        &hostile,
        "--rw",
        "randread",
        "--depth",
        "1",
        "--seconds",
        "0.02",
        "--rounds",
        "1",
        "--cached",
        "--quiet",
    ]);
    assert!(page.contains("&lt;b onclick=x&gt;.img") && !page.contains("<b onclick"));
}

#[test]
fn a_page_without_a_place_is_refused_before_anything_runs() {
    let folder = Place::new();
    let missing = folder.file("missing/page.html");
    for (file, why) in [(missing.as_str(), "mkdir -p"), (".", "Name a file in it")] {
        let asked: [&[&str]; 4] =
            [&["compare"], &["compare", "--raw"], &["validate"], &["bench", "--virtual", "--seconds", "60"]];
        for arguments in asked {
            let output =
                Command::new(UASKIT).args(arguments).args(["--report", file]).output().expect("it starts");
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(2) && text.contains(why), "{arguments:?}: {text}");
            assert!(output.stdout.is_empty(), "{arguments:?}");
        }
    }
}

#[test]
fn what_is_something_else_is_not_replaced() {
    let place = Place::new();
    let runs = place.file("runs.sqlite");
    let bench =
        ["bench", "--virtual", "--rw", "randread", "--size", "8MiB", "--seconds", "0.02", "--rounds", "1"];
    let call = |arguments: &[&str]| Command::new(UASKIT).args(arguments).output().expect("it starts");
    let save = format!("--save={runs}");
    assert!(call(&[&bench[..], &[&save]].concat()).status.success());
    let before = std::fs::read(&runs).expect("is there");
    let other = place.file("other");
    let records = place.file("records.jsonl");
    let sweep =
        ["compare", "--sweep", "depth=1", "--seconds", "0.001", "--transport", "bot", "--out", &records];
    assert!(call(&sweep).status.success());
    for (arguments, code, why) in [
        (vec!["history", "--file", &runs, "--report", &runs], 3, "is not an HTML page"),
        ([&bench[..], &["--report", &runs]].concat(), 3, "is not an HTML page"),
        ([&bench[..], &["--capture", &runs]].concat(), 3, "is not a capture"),
        (vec!["compare", "--raw", "--depth", "1", "--capture", &runs], 3, "is not a capture"),
        (vec!["compare", "--drive", "disk-7200", "--platter", &runs], 3, "is not an SVG picture"),
        (vec!["compare", "--timeline", &runs], 3, "is not an SVG picture"),
        ([&sweep[..], &["--csv", &runs]].concat(), 3, "is not a table"),
        ([&sweep[..], &["--csv", &records]].concat(), 2, "name the same file"),
        (vec!["merge", &records, "-o", &runs], 3, "is not a file of records"),
        (vec!["list", "--record", &runs], 3, "is not a record of a machine"),
        ([&bench[..], &["--report", &other, "--capture", &other]].concat(), 2, "name the same file"),
    ] {
        let output = call(&arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && text.contains(why), "{arguments:?}: {text}");
        assert!(std::fs::read(&runs).expect("is there") == before, "{arguments:?}");
    }
    assert!(!std::path::Path::new(&other).exists());
}

#[test]
fn a_table_never_replaces_a_setup_or_a_disk_image() {
    let place = Place::new();
    let [setup, image, records] = ["setup.csv", "image.csv", "records.jsonl"].map(|name| place.file(name));
    fs::write(&setup, "# a setup, with a comma\ntitle = \"mine\"\n").expect("is written");
    fs::write(&image, vec![0; 1 << 20]).expect("is written");
    let sweep =
        ["compare", "--sweep", "depth=1", "--seconds", "0.001", "--transport", "bot", "--out", &records];
    let call = |arguments: &[&str]| Command::new(UASKIT).args(arguments).output().expect("it starts");
    assert!(call(&sweep).status.success());
    for file in [&setup, &image] {
        let before = fs::read(file).expect("it is there");
        for arguments in [[&sweep[..], &["--csv", file]].concat(), vec!["merge", &records, "-o", file]] {
            let output = call(&arguments);
            assert_eq!(output.status.code(), Some(3), "{arguments:?}: {output:?}");
            assert!(fs::read(file).expect("it is there") == before, "{arguments:?}");
        }
    }
    // An older table is replaced.
    let table = place.file("table.csv");
    for _ in 0..2 {
        assert!(call(&[&sweep[..], &["--csv", &table]].concat()).status.success());
    }
}

#[test]
fn every_output_is_checked_before_anything_is_measured() {
    let place = Place::new();
    let missing = place.file("missing/file");
    // Longer than the test may take.
    let bench = ["bench", "--virtual", "--rw", "randread", "--seconds", "600", "--rounds", "1"];
    let compare = ["compare", "--seconds", "3600"];
    let records = place.file("records.jsonl");
    let sweep = ["compare", "--sweep", "depth=1..256", "--seconds", "3600", "--out", &records];
    // Root may write to any folder but those of the kernel.
    for file in [missing.as_str(), "/proc/file"] {
        for arguments in [
            [&bench[..], &["--report", file]].concat(),
            [&bench[..], &["--capture", file]].concat(),
            [&bench[..], &[&format!("--save={file}")]].concat(),
            [&compare[..], &["--report", file]].concat(),
            vec!["compare", "--commands", "1000", "--capture", file],
            [&compare[..], &[&format!("--save={file}")]].concat(),
            vec!["compare", "--timeline", file],
            vec!["compare", "--drive", "disk-7200", "--platter", file],
            [&sweep[..], &["--csv", file]].concat(),
            [&sweep[..3], &["--seconds", "3600", "--out", file]].concat(),
            vec!["validate", "--report", file],
            vec!["merge", "no-such-file", "-o", file],
            vec!["list", "--record", file],
        ] {
            let output = Command::new(UASKIT).args(&arguments).output().expect("it starts");
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(
                matches!(output.status.code(), Some(1 | 2)) && output.stdout.is_empty(),
                "{arguments:?}: {text}"
            );
            assert!(text.contains(file) || text.contains("missing"), "{arguments:?}: {text}");
        }
    }
    assert!(!std::path::Path::new(&records).exists() || fs::read(&records).expect("it is there").is_empty());
}

#[test]
fn man_pages_replace_older_ones_and_nothing_else() {
    let place = Place::new();
    let call = |folder: &str| Command::new(UASKIT).args(["man", folder]).output().expect("it starts");
    let folder = place.file("pages");
    let output = call(&folder);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && text.contains(&format!("Create it: mkdir -p {folder}")),
        "{text}"
    );
    fs::create_dir(&folder).expect("a folder can be made");
    let foreign = place.file("pages/uaskit-serve.1");
    fs::write(&foreign, ".TH OTHER 1\n").expect("is written");
    let output = call(&folder);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(3) && text.contains("cannot write ") && text.contains("uaskit-serve.1"),
        "{text}"
    );
    assert_eq!(
        fs::read_dir(&folder).expect("a folder").count(),
        1,
        "nothing is written before all is checked"
    );
    fs::remove_file(&foreign).expect("it is there");
    for _ in 0..2 {
        assert!(call(&folder).status.success());
    }
    assert!(fs::read_to_string(&foreign).expect("it is there").contains(".TH uaskit-serve"));
    let output = call("/proc/self");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && !text.contains("mkdir"), "{text}");
    let output = call(&foreign);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not a folder"), "{output:?}");
}

#[test]
fn no_name_in_a_setup_steers_a_terminal() {
    let place = Place::new();
    let setup = place.file("evil.toml");
    std::fs::write(&setup, "title = \"a\"\nsource = \"b\"\n[variant.\"uas\\u001b[31m\"]\n")
        .expect("is written");
    let output = Command::new(UASKIT)
        .args(["compare", "--setup", &setup, "--depth", "1"])
        .output()
        .expect("it starts");
    let text = [output.stdout, output.stderr].concat();
    assert!(!text.contains(&0x1b), "{}", String::from_utf8_lossy(&text));
    assert!(String::from_utf8_lossy(&text).contains("`uas\\u{1b}[31m` contains control characters"));
}
