//! Reports of any kind: archives and texts become an inventory within limits, and every drive in it can be diagnosed.
#![no_main]

use inspect::diagnose::{absent, diagnose};
use inspect::{archive, text};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(mut documents) = archive::documents("report", bytes) else { return };
    // A file of text is read line by line.
    documents.extend(text::Document::read("text", &mut &*bytes));
    let inventory = text::read(&documents);
    for device in inventory.storage() {
        for diagnosis in diagnose(&inventory, device) {
            assert!(diagnosis.causes.iter().all(|cause| !cause.readings.is_empty()), "a cause has evidence");
        }
    }
    let _ = absent(&inventory);
});
