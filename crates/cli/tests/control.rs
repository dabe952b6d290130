//! Commands to a served drive, by the program itself: what is printed, what is left behind, what
//! bad lines do.

mod place;

use place::{Place, UASKIT};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// A drive that is served with `--control`.
struct Served {
    child: Child,
    place: Place,
}

impl Served {
    fn start(flags: &[&str]) -> Self {
        let place = Place::new();
        let (image, socket) = (place.file("first.img"), place.unix("drive.sock"));
        Self::start_in(place, &[&[&image, "--size", "1M", "--usbredir", &socket], flags].concat())
    }

    fn start_in(place: Place, arguments: &[&str]) -> Self {
        let mut child = Command::new(UASKIT)
            .args(["serve", "--json", "--control", &place.unix("control")])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stdout.as_mut().expect("it is piped")).lines();
        assert!(lines.any(|line| line.expect("lines are text").contains("\"listening\"")), "it listens");
        Self { child, place }
    }

    fn control(&self, order: &[&str]) -> Output {
        Command::new(UASKIT)
            .args(["control", &self.place.unix("control")])
            .args(order)
            .output()
            .expect("the program runs")
    }

    #[track_caller]
    fn prints(&self, order: &[&str], expected: &str) {
        let output = self.control(order);
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(expected), "{expected:?} after {order:?}, not {text:?}");
    }

    /// The answer of the drive to malformed bytes.
    fn answer(&self, bytes: &[u8]) -> String {
        let stream = UnixStream::connect(self.place.file("control")).expect("the socket is there");
        // A drive that closes before all is sent has refused it.
        let _ = (&stream).write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = (&stream).read_to_end(&mut answer);
        String::from_utf8(answer).expect("an answer is text")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_image_goes_and_another_comes() {
    let served = Served::start(&["--removable"]);
    let second = served.place.file("second.img");
    fs::write(&second, vec![0; 4 << 20]).unwrap();
    served.prints(&["status", "--json"], "\"bytes\":1048576");
    served.prints(
        &["insert", &second],
        &format!("cannot insert {second} into LUN 0: it already has a medium; eject that first"),
    );
    assert!(served.control(&["eject"]).status.success());
    served.prints(&["status", "--json"], "\"bytes\":null");
    served.prints(&["eject"], "cannot eject LUN 0: it has no medium");
    assert!(served.control(&["insert", &second]).status.success());
    served.prints(&["status", "--json"], "\"bytes\":4194304");
    fs::File::options().write(true).open(&second).unwrap().set_len(8 << 20).unwrap();
    served.prints(&["resize"], "LUN 0 now has 16384 blocks.\n");
    served.prints(&["resize", "--json"], "{\"ok\":{\"blocks\":16384}}\n");
    served.prints(
        &["status"],
        &format!("LUN 0: {second}, 8 MiB in blocks of 512 bytes, read-write, removable; "),
    );
    served.prints(&["eject"], "Ejected the medium of LUN 0; all of its data is flushed.\n");
    served.prints(&["insert", &second], &format!("Inserted {second} into LUN 0.\n"));
    served.prints(&["insert", &second], "it is the medium of that LUN already; there is nothing to do");
    let link = served.place.file("link.img");
    std::os::unix::fs::symlink(&second, &link).unwrap();
    served.prints(&["insert", &link], "it is the medium of that LUN already; there is nothing to do");
}

#[test]
fn a_disc_goes_and_another_comes() {
    let place = Place::new();
    let (first, second, socket) =
        (place.file("first.iso"), place.file("second.img"), place.unix("drive.sock"));
    fs::write(&first, vec![1; 4096]).unwrap();
    fs::write(&second, vec![2; 5000]).unwrap();
    let served = Served::start_in(place, &[&first, "--usbredir", &socket]);
    served.prints(
        &["status"],
        &format!("LUN 0: {first}, 4 KiB in blocks of 2048 bytes, read-only, removable; "),
    );
    served.prints(&["status", "--json"], "\"type\":\"optical\"");
    assert!(served.control(&["eject"]).status.success());
    let (cue, raw) = (served.place.file("disc.cue"), served.place.file("disc.bin"));
    fs::write(&cue, "FILE").unwrap();
    let mut sector = vec![0xff; 2352];
    (sector[0], sector[11]) = (0, 0);
    fs::write(&raw, sector).unwrap();
    served.prints(&["insert", &cue], "it is a cue sheet, and discs are served from ISO images");
    served.prints(&["insert", &raw], "it has raw sectors of 2352 bytes");
    served.prints(&["insert", &second], &format!("Inserted {second} into LUN 0.\n"));
    served.prints(&["status", "--json"], "\"bytes\":6144");
}

#[test]
fn a_drive_starts_without_a_disc() {
    let place = Place::new();
    let (disc, socket) = (place.file("disc.iso"), place.unix("drive.sock"));
    fs::write(&disc, vec![1; 4096]).unwrap();
    let served = Served::start_in(place, &["--optical", "--usbredir", &socket]);
    served.prints(&["status"], "LUN 0: no medium.");
    served.prints(&["insert", &disc], &format!("Inserted {disc} into LUN 0.\n"));
    served.prints(&["status"], "4 KiB in blocks of 2048 bytes, read-only, removable; ");
}

#[test]
fn an_image_has_any_name() {
    use std::os::unix::ffi::OsStrExt;
    let served = Served::start(&["--removable"]);
    let image = PathBuf::from(served.place.file("")).join(std::ffi::OsStr::from_bytes(b"second\xff.img"));
    let insert = || {
        let mut command = Command::new(UASKIT);
        command.args(["control", &served.place.unix("control"), "insert"]).arg(&image);
        command.output().expect("the program runs")
    };
    assert!(served.control(&["eject"]).status.success());
    let output = insert();
    let text = String::from_utf8(output.stderr).expect("text");
    assert!(text.contains(r"second\xff.img into LUN 0: no such file"), "{text}");
    fs::write(&image, vec![0; 4 << 20]).unwrap();
    assert!(insert().status.success());
    served.prints(&["status", "--json"], "\"bytes\":4194304");
}

#[test]
fn what_cannot_be_done_fails_with_the_reason() {
    let served = Served::start(&[]);
    served.prints(
        &["eject"],
        "cannot eject LUN 0: the medium is not removable; serve the drive with --removable",
    );
    assert_eq!(served.control(&["eject", "--lun", "3"]).status.code(), Some(1));
    served.prints(
        &["insert", "/nowhere/image"],
        "the medium is not removable; serve the drive with --removable",
    );
    served.prints(&["eject", "--lun", "3"], "cannot eject LUN 3: there is no such logical unit");
    let nowhere = served.place.unix("nowhere");
    let output = Command::new(UASKIT).args(["control", &nowhere, "status"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("cannot connect to the control socket") && text.contains("--control"), "{text}");
}

#[test]
fn the_socket_of_the_drive_is_not_the_one_for_commands() {
    let served = Served::start(&[]);
    let drive = served.place.unix("drive.sock");
    let output = Command::new(UASKIT).args(["control", &drive, "status"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("drive.sock is not a control socket: it does not answer in JSON\n  Use"), "{text}");
}

#[test]
fn an_image_that_another_lun_has_is_not_inserted() {
    let place = Place::new();
    let other = place.file("other.img");
    fs::write(&other, [0; 4096]).unwrap();
    let served = Served::start(&["--removable", "--lun", &other]);
    assert!(served.control(&["eject"]).status.success());
    served.prints(&["insert", &other], "it is the medium of LUN 1; eject it there first");
}

#[test]
fn an_image_behind_a_loop_device_is_not_inserted() {
    let served = Served::start(&["--removable"]);
    let image = served.place.file("used.img");
    fs::write(&image, vec![0; 1 << 20]).unwrap();
    let attached = Command::new("losetup").args(["--show", "--find", &image]).output();
    let Some(attached) = attached.ok().filter(|output| output.status.success()) else {
        eprintln!("skipped: a loop device cannot be made here");
        return;
    };
    let device = String::from_utf8(attached.stdout).unwrap().trim().to_owned();
    assert!(served.control(&["eject"]).status.success());
    let output = served.control(&["insert", &image]);
    Command::new("losetup").args(["--detach", &device]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("writing to it would destroy data: loop"), "{text}");
    assert_eq!(output.status.code(), Some(1));
    assert!(served.control(&["insert", &image]).status.success());
}

#[test]
fn the_socket_is_its_owners_alone() {
    let served = Served::start(&[]);
    assert_eq!(fs::metadata(served.place.file("control")).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn bytes_that_are_not_a_command_are_answered_and_do_no_harm() {
    let served = Served::start(&[]);
    assert!(served.answer(b"\xff\xfe\0\n").starts_with("{\"error\":"));
    assert!(served.answer(b"{\"eject\":").starts_with("{\"error\":"));
    assert!(served.answer("[".repeat(1 << 20).as_bytes()).len() < 200);
    assert_eq!(served.answer(b""), "");
    assert_eq!(served.answer(b"{}\n{}\n").lines().count(), 2);
    served.prints(&["status"], "No client is connected. 0 reads (0 B), 0 writes (0 B), 0 failures.\n");
}

#[test]
fn an_image_that_was_created_for_nothing_is_gone_again() {
    let place = Place::new();
    let serve = |address: &str| {
        let image = place.file("new.img");
        let arguments = ["serve", &image, "--size", "1M", "--usbredir", address];
        Command::new(UASKIT).args(arguments).output().unwrap()
    };
    let output = serve(&place.unix("missing/drive.sock"));
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("its directory does not exist; create it or choose another path"), "{text}");
    assert!(!PathBuf::from(place.file("new.img")).exists());
    fs::write(place.file("new.img"), b"precious").unwrap();
    assert_eq!(serve(&place.unix("missing/drive.sock")).status.code(), Some(3));
    assert_eq!(fs::read(place.file("new.img")).unwrap(), b"precious");
}

/// A controller with a drive of each bus: ports of USB 2.0 come first.
fn served_host(more: &[&str]) -> Served {
    let place = Place::new();
    let (image, socket) = (place.file("card.img"), place.unix("host.sock"));
    fs::write(&image, vec![0; 1 << 20]).expect("a place for an image");
    let card = format!("image={image},removable,speed=high,serial=CARD");
    let host = ["--vfio-user", &socket, "--drive", &card, "--drive", "ram=2M,serial=DISK"];
    Served::start_in(place, &[&host, more].concat())
}

#[test]
fn each_drive_of_a_controller_is_named_by_its_port() {
    let served = served_host(&[]);
    served
        .prints(&["status"], "\nPort 1: serial CARD, high speed, no transport yet, 0 commands in flight.\n");
    served.prints(&["status"], "\nPort 16: serial DISK, super speed, ");
    served.prints(&["eject"], "there are drives at ports 1, 16; name one with --port");
    served.prints(&["eject", "--port", "2"], "no drive at port 2");
    served.prints(&["eject", "--port", "16"], "the medium is not removable");
    served.prints(&["eject", "--port", "1"], "Ejected the medium of LUN 0");
    let card = served.place.file("card.img");
    served.prints(&["insert", &card], "there are drives at ports 1, 16");
    served.prints(&["insert", &card, "--port", "1"], "Inserted ");
    served.prints(&["resize", "--port", "1"], "LUN 0 now has 2048 blocks");
}

#[test]
fn drives_come_and_go_while_a_controller_is_served() {
    let served = served_host(&[]);
    served.prints(&["detach"], "name one with --port");
    served.prints(&["detach", "--port", "1"], "Detached the drive; all of its data is flushed.\n");
    served.prints(&["detach", "--port", "1"], "no drive at port 1");
    served.prints(&["attach", "ram=1M,serial=NEW"], "Attached the drive at port 17.\n");
    let card = format!("image={},speed=full", served.place.file("card.img"));
    served.prints(&["attach", &card], "Attached the drive at port 1.\n");
    served.prints(&["attach", &card], "cannot attach the drive: ");
    served.prints(&["status", "--json"], "\"serial\":\"NEW\"");
    served.prints(&["attach", "speed=high"], "name an image");
    served.prints(&["attach", "ram=1M,fault=hse@1"], "a fault of the controller");
    for _ in 0..13 {
        served.prints(&["attach", "ram=1M"], "Attached the drive at port ");
    }
    served.prints(&["attach", "ram=1M"], "no port of that speed is free");
    served.prints(&["detach", "--port", "17"], "Detached");
    served.prints(&["attach", "ram=1M"], "Attached the drive at port 17.");
}

#[test]
fn faults_are_planned_while_drives_are_served() {
    let served = served_host(&[]);
    served.prints(&["fault", "hse@1"], "Planned hse@1.\n");
    served.prints(&["fault", "lose-status/9:1"], "name one with --port");
    served.prints(&["fault", "lose-status/9:1", "--port", "16"], "Planned lose-status/9:1.\n");
    (0..63).for_each(|_| drop(served.control(&["fault", "lose-data/9", "--port", "16"])));
    served.prints(&["fault", "lose-data@1", "--port", "16"], "too many faults are planned");
    let one = Served::start(&[]);
    one.prints(&["fault", "hse@1"], "usbredir exports one drive, without a controller");
    one.prints(&["detach"], "usbredir exports one drive, without a controller");
    one.prints(&["fault", "lose-data@1"], "Planned lose-data@1.");
}
