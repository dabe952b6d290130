//! Captures that QEMU writes of its drives (`pcap=`): `uaskit decode` finds in them what tshark finds.

use std::time::Duration;

use uaskit_interop::{
    Result, Shared,
    qemu::Machine,
    scratch::Scratch,
    tools::capture::{self, Capture},
};

/// usb-storage, usb-bot and usb-uas, each with some writes, a flush and some reads.
struct Captures {
    storage: Capture,
    bot: Capture,
    uas: Capture,
}

static CAPTURES: Shared<Captures> = Shared::new(|| {
    let place = Scratch::new()?;
    let ids = ["storage", "bot", "uas"];
    let file = |id: &str| place.path(&format!("{id}.pcap"));
    let mut images = Vec::new();
    for id in ids {
        images.push(place.image(id, 16 << 20)?);
    }
    let machine = Machine::new("qemu-pcap")
        .storage_disk("storage", &images[0])
        .bot_disk("bot", &images[1])
        .uas_disk("uas", &images[2]);
    let machine = ids.iter().fold(machine, |machine, id| machine.captured(id, &file(id)));
    let mut vm = machine.boot()?;
    for disk in vm.guest.await_disks(ids.len(), Duration::from_secs(20))? {
        let disk = disk.path();
        let guest = &mut vm.guest;
        guest.stdout_of(&format!("dd if=/dev/urandom of={disk} bs=64k count=4 oflag=direct conv=fsync"))?;
        guest.stdout_of(&format!("dd if={disk} of=/dev/null bs=64k count=4 iflag=direct"))?;
    }
    for id in ids {
        vm.detach(&format!("{id}-bridge"))?;
    }
    let written = |id: &str| capture::written(&file(id));
    Ok(Captures { storage: written("storage")?, bot: written("bot")?, uas: written("uas")? })
});

/// READ(10), WRITE(10), SYNCHRONIZE CACHE(10), INQUIRY, TEST UNIT READY, READ CAPACITY(10), MODE SENSE(6).
const OPCODES: [u8; 7] = [0x28, 0x2a, 0x35, 0x12, 0x00, 0x25, 0x1a];

/// As many commands of each kind, and as many ends of each kind, as tshark finds.
fn counts_alike(capture: &Capture, transport: &str, command: &str, ends: [(&str, &str); 2]) -> Result<()> {
    let decoded = capture.decoded()?;
    for opcode in OPCODES {
        let filter = format!("{command} && scsi_sbc.opcode == {opcode}");
        let found = decoded.commands(|one| one["transport"] == transport && one["opcode"] == opcode);
        assert_eq!(found, capture.count(&filter)?, "{filter}");
    }
    for (filter, outcome) in ends {
        assert_eq!(decoded.commands(|one| one["outcome"] == outcome), capture.count(filter)?, "{filter}");
    }
    assert_eq!(decoded.commands(|_| true), capture.count(command)?);
    for opcode in [0x28, 0x2a] {
        let long = decoded.commands(|one| one["opcode"] == opcode && one["bytes"] == 65_536);
        assert!(long >= 4, "{opcode:#x}: {long}");
    }
    Ok(())
}

const OF_BOT: [(&str, &str); 2] = [
    ("usbms.dCSWSignature == 0x53425355 && usbms.dCSWStatus == 0", "passed"),
    ("usbms.dCSWSignature == 0x53425355 && usbms.dCSWStatus == 1", "failed"),
];

#[test]
fn usb_storage_is_decoded_as_tshark_does() -> Result<()> {
    counts_alike(&CAPTURES.lock()?.storage, "BOT", "usbms.dCBWSignature == 0x43425355", OF_BOT)
}

#[test]
fn usb_bot_is_decoded_as_tshark_does() -> Result<()> {
    counts_alike(&CAPTURES.lock()?.bot, "BOT", "usbms.dCBWSignature == 0x43425355", OF_BOT)
}

#[test]
fn usb_uas_is_decoded_as_tshark_does() -> Result<()> {
    let ends = [
        ("uasp.iu_id == 3 && uasp.sense.status == 0", "GOOD"),
        ("uasp.iu_id == 3 && uasp.sense.status == 2", "CHECK CONDITION"),
    ];
    counts_alike(&CAPTURES.lock()?.uas, "UAS", "uasp.iu_id == 1", ends)
}
