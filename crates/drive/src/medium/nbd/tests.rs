//! The medium on a small server in this process; real servers are in the interoperability tests.

use super::*;
use crate::medium::{flush, suite};
use device::medium::{MediumDone, MediumError};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use testkit::nbd::{ABILITIES, NbdConfig, NbdServer};
use units::{Extent, Lba};
use wire::nbd::ErrorCode;

/// A path for a new socket. A server removes it when it ends.
fn socket_path() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("uaskit-nbd-{}-{number}", std::process::id()))
}

fn serve(config: NbdConfig) -> NbdServer {
    NbdServer::start(&socket_path(), config)
}

fn open(server: &NbdServer, block_size: BlockSize) -> Result<NbdMedium, NbdError> {
    NbdMedium::open(&server.address().parse().expect("it is an address"), block_size, false)
}

fn opened(config: NbdConfig) -> (NbdMedium, NbdServer) {
    let server = serve(config);
    (open(&server, BlockSize::B512).expect("it can be opened"), server)
}

fn behaves_with(change: impl Fn(&mut NbdConfig)) {
    let mut servers = Vec::new();
    suite::behaves_like_the_model(|size, block_size| {
        let mut config = NbdConfig::new(size.0 as usize);
        change(&mut config);
        let server = serve(config);
        let medium = open(&server, block_size).expect("it can be opened");
        servers.clear();
        servers.push(server);
        Box::new(medium)
    });
}

#[test]
fn behaves_like_the_model() {
    behaves_with(|_| {});
}

#[test]
fn behaves_like_the_model_with_reads_in_pieces_and_short_requests() {
    behaves_with(|config| (config.splits_reads, config.block_sizes) = (true, Some((512, 4096))));
}

#[test]
fn behaves_like_the_model_on_the_simplest_server() {
    behaves_with(|config| {
        (config.is_structured, config.block_sizes) = (false, None);
        config.flags = TransmissionFlags::HAS_FLAGS;
    });
}

#[test]
fn behaves_like_the_model_on_several_connections() {
    behaves_with(|config| config.flags = ABILITIES.with(TransmissionFlags::CAN_MULTI_CONN));
}

#[test]
fn refuses_what_the_target_never_asks() {
    let (mut medium, _server) = opened(NbdConfig::new(1 << 20));
    suite::refuses_what_the_target_never_asks(&mut medium);
}

#[test]
fn an_export_that_cannot_be_a_drive_is_refused_with_the_reason() {
    let reason = |change: &dyn Fn(&mut NbdConfig)| {
        let mut config = NbdConfig::new(1 << 20);
        change(&mut config);
        let server = serve(config);
        open(&server, BlockSize::B512).expect_err("it is refused").reason
    };
    assert!(matches!(reason(&|config| config.wants_tls = true), NbdReason::TlsRequired));
    assert!(matches!(reason(&|config| config.size_bytes = 0), NbdReason::Empty));
    assert!(matches!(
        reason(&|config| config.size_bytes = 1000),
        NbdReason::Uneven { size: ByteCount(1000), .. }
    ));
    let large = reason(&|config| config.block_sizes = Some((4096, 1 << 20)));
    assert!(matches!(large, NbdReason::BlocksTooSmall { minimum: 4096, .. }));
    let server = serve(NbdConfig::new(1 << 20));
    let other = server.address().replace("///", "///other").parse().expect("it is an address");
    let error = NbdMedium::open(&other, BlockSize::B512, false).expect_err("there is none");
    assert!(matches!(error.reason, NbdReason::NoExport), "{error}");
}

#[test]
fn no_server_listens_or_another_one_does() {
    let path = socket_path();
    let address: NbdAddress =
        format!("nbd+unix:///?socket={}", path.display()).parse().expect("it is an address");
    let error = NbdMedium::open(&address, BlockSize::B512, false).expect_err("no server listens");
    assert!(matches!(error.reason, NbdReason::NotConnected(_)), "{error}");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("it can be listened at");
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        std::io::Write::write_all(&mut stream, b"220 mail.example ESMTP ready\r\n").expect("it reads");
    });
    let error = NbdMedium::open(&address, BlockSize::B512, false).expect_err("it is a mail server");
    assert!(matches!(error.reason, NbdReason::NotNbd), "{error}");
    other.join().expect("it does not panic");
    std::fs::remove_file(&path).expect("it was listened at");
}

#[test]
fn a_read_only_export_is_write_protected() {
    let mut config = NbdConfig::new(1 << 20);
    config.flags = ABILITIES.with(TransmissionFlags::READ_ONLY);
    let (mut medium, _server) = opened(config);
    assert!(medium.is_read_only());
    assert_eq!(suite::write(&mut medium, 0, &[7; 512], false), Err(MediumError::WriteProtected));
}

#[test]
fn holes_are_unmapped_and_unmap_makes_them() {
    let (mut medium, _server) = opened(NbdConfig::new(1 << 20));
    suite::write(&mut medium, 8, &[7; 4096], false).expect("there is room");
    let mut status = |lba| suite::bare(&mut medium, MediumOp::Status, Extent::new(lba, 100));
    let provisioning = |mapped, blocks| Ok(MediumDone::Provisioning { mapped, blocks: BlockCount(blocks) });
    assert_eq!(
        [status(0), status(8), status(16)],
        [provisioning(false, 8), provisioning(true, 8), provisioning(false, 100)]
    );
    assert_eq!(suite::bare(&mut medium, MediumOp::Unmap, Extent::new(8, 4)), Ok(MediumDone::Done));
    assert_eq!(suite::bare(&mut medium, MediumOp::Status, Extent::new(0, 100)), provisioning(false, 12));
}

#[test]
fn what_was_acknowledged_survives_a_server_that_is_killed() {
    let (mut medium, mut server) = opened(NbdConfig::new(1 << 20));
    suite::write(&mut medium, 0, &[1; 512], false).expect("there is room");
    suite::bare(&mut medium, MediumOp::Flush, Extent::default()).expect("it is flushed");
    suite::write(&mut medium, 1, &[2; 512], false).expect("there is room");
    suite::write(&mut medium, 2, &[3; 512], false).expect("there is room");
    suite::write(&mut medium, 2, &[4; 512], false).expect("there is room");
    suite::bare(&mut medium, MediumOp::Unmap, Extent::new(0, 1)).expect("it is unmapped");
    server.kill();
    assert_eq!(server.durable()[..3 * 512], [[1; 512], [0; 512], [0; 512]].concat());
    server.restart();
    assert_eq!(
        suite::read(&mut medium, Extent::new(0, 3)),
        Ok([[0; 512], [2; 512], [4; 512]].concat()),
        "it is written again before anything is read"
    );
    flush(&mut medium, |_| {}).expect("it is flushed");
    assert_eq!(server.durable()[..3 * 512], [[0; 512], [2; 512], [4; 512]].concat());
}

#[test]
fn a_server_that_closes_connections_anywhere_loses_nothing() {
    for connections in [ABILITIES, ABILITIES.with(TransmissionFlags::CAN_MULTI_CONN)] {
        let mut config = NbdConfig::new(1 << 20);
        config.flags = connections;
        let (mut medium, server) = opened(config);
        let mut model = vec![0_u8; 1 << 20];
        let mut random = 7_u64;
        for round in 1..=120_u32 {
            server.close_after(round % 3 + 1);
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round.into());
            let (lba, blocks) = (random >> 40 & 1023, (random >> 52 & 7) + 1);
            let bytes = vec![random as u8 | 1; blocks as usize * 512];
            let what = (round, lba, blocks);
            assert_eq!(
                suite::write(&mut medium, lba, &bytes, round % 3 == 0),
                Ok(MediumDone::Done),
                "{what:?}"
            );
            model[lba as usize * 512..][..bytes.len()].copy_from_slice(&bytes);
            if round % 7 == 0 {
                flush(&mut medium, |_| {}).expect("it is flushed");
                assert!(server.durable() == model, "{what:?}: all is durable");
            }
            let read = suite::read(&mut medium, Extent::new(lba, blocks));
            assert!(read.as_deref() == Ok(&bytes[..]), "{what:?}");
        }
        assert!(server.connections() > 60, "it closed connections");
        assert!(suite::read(&mut medium, Extent::new(0, 2048)) == Ok(model));
    }
}

#[test]
fn more_than_there_is_room_for_is_flushed_meanwhile() {
    let (mut medium, mut server) = opened(NbdConfig::new(64 << 20));
    let bytes = vec![5; 1 << 20];
    for lba in 0..48 {
        suite::write(&mut medium, lba * 2048, &bytes, false).expect("there is room");
    }
    server.kill();
    let durable = server.durable().iter().filter(|&&byte| byte == 5).count();
    assert!(durable >= 40 << 20, "{durable} bytes are durable without a flush of the host");
    server.restart();
    let read = suite::read(&mut medium, Extent::new(0, 16384)).expect("it is there");
    assert!(read.iter().all(|&byte| byte == 5));
    flush(&mut medium, |_| {}).expect("it is flushed");
    assert_eq!(server.durable().iter().filter(|&&byte| byte == 5).count(), 48 << 20);
}

#[test]
fn a_flush_that_fails_is_reported() {
    let (mut medium, server) = opened(NbdConfig::new(1 << 20));
    suite::write(&mut medium, 0, &[1; 512], false).expect("there is room");
    server.fail_flushes(ErrorCode::Io);
    let failed = Err(MediumError::Unwritable { lba: Lba(0) });
    assert_eq!(suite::bare(&mut medium, MediumOp::Flush, Extent::default()), failed);
    server.fail_flushes(ErrorCode::None);
    assert_eq!(suite::bare(&mut medium, MediumOp::Flush, Extent::default()), Ok(MediumDone::Done));
}

#[test]
fn a_lost_connection_is_noticed_and_made_again_without_a_command() {
    let (mut medium, mut server) = opened(NbdConfig::new(1 << 20));
    server.kill();
    server.restart();
    let deadline = Instant::now() + Duration::from_secs(10);
    while server.connections() < 2 && Instant::now() < deadline {
        medium.flush_submissions();
        let fd = medium.event_fd().expect("it has one");
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        let _ = rustix::event::poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&second));
    }
    assert_eq!(server.connections(), 2);
}
