//! The scorecard as JUnit XML: a suite for each group, a case for each test. Warnings are cases that passed, with their
//! words as output.

use super::target::Checked;
use crate::failure::Failure;
use conformance::{Group, Outcome, Verdict};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::io;

pub(super) fn document(checked: &Checked) -> Result<Vec<u8>, Failure> {
    write(checked).map_err(|error| Failure::new("cannot make the JUnit file").because(error))
}

fn write(checked: &Checked) -> io::Result<Vec<u8>> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let root = writer.create_element("testsuites").with_attribute(("name", "uaskit check"));
    root.write_inner_content(|writer| {
        Group::ALL.into_iter().try_for_each(|group| suite(writer, checked, group))
    })?;
    writer.get_mut().push(b'\n');
    Ok(writer.into_inner())
}

fn suite(writer: &mut Writer<Vec<u8>>, checked: &Checked, group: Group) -> io::Result<()> {
    let outcomes: Vec<&Outcome> =
        checked.scorecard.outcomes.iter().filter(|outcome| outcome.test.group == group).collect();
    let count = |verdict| checked.scorecard.count(Some(group), verdict).to_string();
    let (total, failed, skipped) = (outcomes.len().to_string(), count("fail"), count("not tested"));
    let attributes = [
        ("name", group.name()),
        ("tests", &total),
        ("failures", &failed),
        ("skipped", &skipped),
        ("errors", "0"),
    ];
    let element = writer.create_element("testsuite").with_attributes(attributes);
    element.write_inner_content(|writer| outcomes.iter().try_for_each(|outcome| case(writer, outcome)))?;
    Ok(())
}

fn case(writer: &mut Writer<Vec<u8>>, outcome: &Outcome) -> io::Result<()> {
    let Outcome { test, verdict, steps, took } = outcome;
    let seconds = format!("{:.3}", took.as_secs_f64());
    let attributes = [("classname", test.group.name()), ("name", test.id), ("time", &seconds)];
    let element = writer.create_element("testcase").with_attributes(attributes);
    let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
    match verdict {
        Verdict::Pass => element.write_empty()?,
        Verdict::Fail(words) => element.write_inner_content(|writer| {
            let failure = writer.create_element("failure").with_attribute(("message", words.as_str()));
            let text = format!("{} ({})\n{}\n{}", test.title, test.clause, test.means, steps.join("\n"));
            failure.write_text_content(BytesText::new(&text)).map(drop)
        })?,
        Verdict::NotTested(words) => element.write_inner_content(|writer| {
            writer
                .create_element("skipped")
                .with_attribute(("message", words.as_str()))
                .write_empty()
                .map(drop)
        })?,
        Verdict::Warning(words) | Verdict::Note(words) => element.write_inner_content(|writer| {
            let text = format!("{}: {words}", verdict.name());
            writer.create_element("system-out").write_text_content(BytesText::new(&text)).map(drop)
        })?,
    };
    Ok(())
}
