//! Disks that are asked how warm they are, whatever they make of that.

use super::*;
use initiator::disk::TemperatureSource;

fn temperature(disk: &Attachment<Bridge>) -> Option<(u8, TemperatureSource)> {
    disk.geometry().temperature.map(|reading| (reading.celsius, reading.source))
}

/// The temperature page, with so many degrees.
fn page(celsius: u8) -> Answer {
    Answer::Bytes(vec![0x8d, 0, 0, 6, 0, 0, 0x03, 2, 0, celsius])
}

/// SMART READ DATA with attribute 194.
fn smart(celsius: u8) -> Answer {
    let mut block = vec![0; 512];
    (block[2], block[7]) = (194, celsius);
    block[511] = block.iter().fold(0u8, |sum: u8, byte| sum.wrapping_sub(*byte));
    Answer::Bytes(block)
}

#[test]
fn a_disk_with_the_page_reports_before_and_after() {
    let mut disk = attached(Bridge { log_page: page(35), smart: smart(60), ..Bridge::default() });
    assert_eq!(temperature(&disk), Some((35, TemperatureSource::LogPage)));
    read(&mut disk);
    disk.session.bus_mut().log_page = page(41);
    let after = disk.temperature(AskTemperature::ByLog).expect("it is identified again");
    assert_eq!(after.map(|reading| reading.celsius), Some(41));
    read(&mut disk);
}

#[test]
fn a_stall_in_place_of_the_page_leads_to_smart() {
    let mut disk = attached(Bridge { smart: smart(44), ..Bridge::default() });
    assert_eq!(temperature(&disk), Some((44, TemperatureSource::Smart)));
    assert!(read(&mut disk).transport.stalls > 0);
    assert_eq!(disk.session.bus().resets, 0);
}

#[test]
fn a_disk_that_refuses_all_or_brings_nonsense_is_driven_as_any_other() {
    for log_page in [Answer::Refused, Answer::Bytes(vec![0; 252]), Answer::Bytes(Vec::new()), page(0xff)] {
        for smart in [Answer::Refused, Answer::Bytes(vec![0xff; 512]), Answer::Bytes(vec![1; 7])] {
            let bridge = Bridge { log_page: log_page.clone(), smart, ..Bridge::default() };
            let mut disk = attached(bridge);
            assert_eq!(temperature(&disk), None, "{log_page:?}");
            read(&mut disk);
        }
    }
}

#[test]
fn a_disk_that_does_not_answer_is_reset_and_then_left_alone() {
    let began = Instant::now();
    let bridge = Bridge { log_page: Answer::Silence, smart: smart(44), ..Bridge::default() };
    let mut disk = attached(bridge);
    let seconds = began.elapsed().as_secs();
    assert!((3..30).contains(&seconds), "{seconds} s");
    // It was not asked otherwise.
    assert_eq!(temperature(&disk), None);
    let counters = read(&mut disk);
    assert_eq!((counters.transport.timeouts, disk.session.bus().resets), (1, 1));
}
