//! Findings of rules, and their places.

use serde::Deserialize;
use std::fmt;

/// One rule of docs/STYLE.md. Its name is what the list of exceptions and the output call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Rule {
    /// Crates depend one way.
    Arrow,
    /// Each outside dependency has a reason beside it.
    Reason,
    /// A function fits a screen.
    FunctionLength,
    /// A file fits a sitting.
    FileLength,
    /// Five parameters are many.
    Parameters,
    /// A module opens with what it is.
    ModuleDocs,
    /// Documentation begins with its subject.
    DocSubject,
    /// No `unwrap` and its like in libraries.
    Panic,
    /// `unsafe` only where it is allowed.
    Unsafe,
    /// Names that say nothing.
    Name,
    /// No clock, thread, file or hash order below the drivers.
    Ambient,
    /// No path of somebody's machine.
    MachinePath,
    /// Nothing left to be done later in a comment.
    LeftOver,
    /// Bit arithmetic lives in `wire`.
    Bits,
    /// Documents name files that exist.
    Document,
    /// Crates of others have licences that are allowed.
    Licence,
    /// Words that are not used.
    Word,
    /// A public type is named by its role.
    PublicName,
    /// A group of arguments is a struct.
    TupleParameter,
    /// The `impl` blocks of a type are few.
    ImplLines,
    /// Modules depend one way.
    ImportCircle,
    /// One module style.
    ModuleStyle,
    /// Subjects of commits.
    Commit,
    /// Documents are short.
    DocumentSize,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Arrow => "arrow",
            Self::Reason => "reason",
            Self::FunctionLength => "function-length",
            Self::FileLength => "file-length",
            Self::Parameters => "parameters",
            Self::ModuleDocs => "module-docs",
            Self::DocSubject => "doc-subject",
            Self::Panic => "panic",
            Self::Unsafe => "unsafe",
            Self::Name => "name",
            Self::Ambient => "ambient",
            Self::MachinePath => "machine-path",
            Self::LeftOver => "left-over",
            Self::Bits => "bits",
            Self::Document => "document",
            Self::Licence => "licence",
            Self::Word => "word",
            Self::PublicName => "public-name",
            Self::TupleParameter => "tuple-parameter",
            Self::ImplLines => "impl-lines",
            Self::ImportCircle => "import-circle",
            Self::ModuleStyle => "module-style",
            Self::Commit => "commit",
            Self::DocumentSize => "document-size",
        })
    }
}

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// From the top of the repository.
    pub(crate) path: String,
    /// Counts from 1.
    pub(crate) line: usize,
    pub(crate) rule: Rule,
    /// The item that an exception names: a function, a type, a crate; empty when the file as a
    /// whole is meant.
    pub(crate) subject: String,
    /// How much of it there is: lines for a length, parameters for a signature, else 1.
    pub(crate) amount: usize,
    /// The problem and its remedy, in one line.
    pub(crate) advice: String,
}

impl Finding {
    /// A finding that counts as one and concerns the file as a whole.
    pub(crate) fn new(path: &str, line: usize, rule: Rule, advice: impl Into<String>) -> Self {
        let (path, advice) = (path.to_owned(), advice.into());
        Self { path, line, rule, subject: String::new(), amount: 1, advice }
    }

    /// Names what an exception would have to name.
    pub(crate) fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = subject.into();
        self
    }

    /// Says how much there is of it.
    pub(crate) fn amount(mut self, amount: usize) -> Self {
        self.amount = amount;
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.advice)
    }
}
