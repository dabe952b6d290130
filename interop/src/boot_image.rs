//! Images that firmware boots: a few instructions that send words to the serial port.
//!
//! The words stand behind a long stretch of zeroes, so that the firmware has read more than one block when they appear.

use std::{fs, path::PathBuf, process::Command};

use crate::{Error, Result, child, scratch::Scratch};

/// Words that the instructions send.
pub const WORDS: &str = "booted from the virtual drive";

/// Prints the text at ds:si on the serial port, and halts.
#[rustfmt::skip]
const PRINT: [u8; 14] = [
    0xba, 0xf8, 0x03,       //        mov dx, 0x3f8
    0xac,                   // next:  lodsb
    0x84, 0xc0,             //        test al, al
    0x74, 0x03,             //        jz halt
    0xee,                   //        out dx, al
    0xeb, 0xf8,             //        jmp next
    0xf4,                   // halt:  hlt
    0xeb, 0xfd,             //        jmp halt
];

const IMAGE_BYTES: u64 = 33 << 20;
const SECTOR_BYTES: usize = 512;

/// A disk with a master boot record that reads 64 blocks through INT 13h and prints what the last one holds.
pub fn bios(place: &Scratch) -> Result<PathBuf> {
    const FIRST_READ: usize = 20_000;
    const READ: usize = 64;
    #[rustfmt::skip]
    let code: &[u8] = &[
        0x31, 0xc0,             //        xor ax, ax
        0x8e, 0xd8,             //        mov ds, ax
        0x8e, 0xd0,             //        mov ss, ax
        0xbc, 0x00, 0x7c,       //        mov sp, 0x7c00
        0xbe, 0x40, 0x7c,       //        mov si, packet
        0xb4, 0x42,             //        mov ah, 0x42       ; extended read; dl is the drive booted from
        0xcd, 0x13,             //        int 0x13
        0x72, 0x0e,             //        jc halt            ; in PRINT
        0xbe, 0x00, 0xfe,       //        mov si, 0xfe00     ; the 64th block
    ];
    let code = [code, &PRINT].concat();
    #[rustfmt::skip]
    let packet: &[u8] = &[
        16, 0, READ as u8, 0,                       // length, reserved, blocks
        0x00, 0x80, 0x00, 0x00,                     // to 0000:8000
        0x20, 0x4e, 0, 0, 0, 0, 0, 0,               // from block 20 000
    ];
    let mut bytes = vec![0; IMAGE_BYTES as usize];
    bytes[..code.len()].copy_from_slice(&code);
    bytes[0x40..0x40 + packet.len()].copy_from_slice(packet);
    bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
    let words = (FIRST_READ + READ - 1) * SECTOR_BYTES;
    bytes[words..words + WORDS.len()].copy_from_slice(WORDS.as_bytes());
    let image = place.path("disk");
    fs::write(&image, bytes).map_err(Error::io("write a boot image"))?;
    Ok(image)
}

/// Bytes of the boot image of a disc.
pub const EL_TORITO_BYTES: usize = 64 * 2048;

/// The boot image of a disc, which firmware loads whole without emulation: it prints the words at its end.
pub fn el_torito() -> Vec<u8> {
    // Firmware may load it no further than one segment below 7c00:0000, so the last words are past 64 KiB.
    const WORDS_AT: usize = EL_TORITO_BYTES - 0x100;
    const LOAD_SEGMENT: usize = 0x07c0;
    const LAST_SEGMENT: u16 = (LOAD_SEGMENT + WORDS_AT / 16) as u16;
    let [low, high] = LAST_SEGMENT.to_le_bytes();
    #[rustfmt::skip]
    let code: &[u8] = &[
        0xb8, low, high,        //        mov ax, segment of the words
        0x8e, 0xd8,             //        mov ds, ax
        0x31, 0xf6,             //        xor si, si
    ];
    let code = [code, &PRINT].concat();
    let mut bytes = vec![0; EL_TORITO_BYTES];
    bytes[..code.len()].copy_from_slice(&code);
    bytes[WORDS_AT..WORDS_AT + WORDS.len()].copy_from_slice(WORDS.as_bytes());
    bytes
}

/// A FAT file system that holds a UEFI application where firmware looks for it on a removable medium.
pub fn uefi(place: &Scratch) -> Result<PathBuf> {
    let sectors = (IMAGE_BYTES as usize / SECTOR_BYTES).to_string();
    uefi_file_system(place, IMAGE_BYTES, &["-T", &sectors, "-h", "16", "-s", "32"])
}

/// The same on a floppy disk of 1.44 MB.
pub fn uefi_floppy(place: &Scratch) -> Result<PathBuf> {
    const FLOPPY_BYTES: u64 = 1_474_560;
    uefi_file_system(place, FLOPPY_BYTES, &["-f", "1440"])
}

/// `geometry` goes to mformat.
fn uefi_file_system(place: &Scratch, bytes: u64, geometry: &[&str]) -> Result<PathBuf> {
    let application = place.path("bootx64.efi");
    fs::write(&application, uefi_application()).map_err(Error::io("write an application"))?;
    let image = place.image("disk", bytes)?;
    let mtool = |name: &str, arguments: &[&str]| {
        child::output_of(Command::new(name).arg("-i").arg(&image).args(arguments)).map(drop)
    };
    mtool("mformat", &[geometry, &["::"]].concat())?;
    mtool("mmd", &["::/EFI", "::/EFI/BOOT"])?;
    mtool("mcopy", &[&application.display().to_string(), "::/EFI/BOOT/BOOTX64.EFI"])?;
    Ok(image)
}

/// A PE32+ image of one section: code at its start, words at its end (PE format, revision 11).
fn uefi_application() -> Vec<u8> {
    const HEADERS: usize = 0x400;
    const SECTION_AT: u32 = 0x1000;
    const SECTION_BYTES: u32 = 1 << 20;
    const WORDS_AT: u32 = SECTION_BYTES - 0x100;
    let mut file = vec![0; HEADERS + SECTION_BYTES as usize];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"MZ");
    put(0x3c, &0x80_u32.to_le_bytes());
    put(0x80, b"PE\0\0");
    put(0x84, &0x8664_u16.to_le_bytes()); // x86-64
    put(0x86, &1_u16.to_le_bytes()); // sections
    put(0x94, &0xf0_u16.to_le_bytes()); // length of the optional header
    put(0x96, &0x0022_u16.to_le_bytes()); // executable, large addresses
    let optional = 0x98;
    put(optional, &0x020b_u16.to_le_bytes()); // PE32+
    put(optional + 4, &SECTION_BYTES.to_le_bytes()); // code
    put(optional + 16, &SECTION_AT.to_le_bytes()); // entry point
    put(optional + 20, &SECTION_AT.to_le_bytes()); // base of code
    put(optional + 32, &0x1000_u32.to_le_bytes()); // section alignment
    put(optional + 36, &0x200_u32.to_le_bytes()); // file alignment
    put(optional + 56, &(SECTION_AT + SECTION_BYTES).to_le_bytes()); // image
    put(optional + 60, &(HEADERS as u32).to_le_bytes());
    put(optional + 68, &10_u16.to_le_bytes()); // subsystem: EFI application
    put(optional + 108, &16_u32.to_le_bytes()); // data directories, all empty
    let section = optional + 0xf0;
    put(section, b".text");
    put(section + 8, &SECTION_BYTES.to_le_bytes());
    put(section + 12, &SECTION_AT.to_le_bytes());
    put(section + 16, &SECTION_BYTES.to_le_bytes());
    put(section + 20, &(HEADERS as u32).to_le_bytes());
    put(section + 36, &0x6000_0020_u32.to_le_bytes()); // code, executable, readable
    put(HEADERS, &[0x48, 0x8d, 0x35]); //               lea rsi, [rip + words]
    put(HEADERS + 3, &(WORDS_AT - 7).to_le_bytes());
    #[rustfmt::skip]
    put(HEADERS + 7, &[
        0x66, 0xba, 0xf8, 0x03, //        mov dx, 0x3f8
        0xac,                   // next:  lodsb
        0x84, 0xc0,             //        test al, al
        0x74, 0x03,             //        jz stop
        0xee,                   //        out dx, al
        0xeb, 0xf8,             //        jmp next
        0xeb, 0xfe,             // stop:  jmp stop
    ]);
    put(HEADERS + WORDS_AT as usize, WORDS.as_bytes());
    file
}
