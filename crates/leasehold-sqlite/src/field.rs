//! One field at a time: every value of a row is checked before it is believed.

use crate::error::Fault;
use leasehold_core::{AttemptId, Fence, Moment, NameError, TraceContext};
use rusqlite::{Row, types::ValueRef};
use std::{fmt::Write, sync::Arc};

/// A row whose fields are read by name. What does not fit is damage that names the table, the row and the column.
pub(crate) struct Fields<'r> {
    row: &'r Row<'r>,
    table: &'static str,
    /// The column that people know the row by.
    key: &'static str,
}

impl<'r> Fields<'r> {
    pub(crate) fn of(row: &'r Row<'r>, table: &'static str, key: &'static str) -> Self {
        Self { row, table, key }
    }

    /// The damage of one column.
    pub(crate) fn damage(&self, column: &str, problem: impl std::fmt::Display) -> Fault {
        Fault::damage(self.place(), format!("{column} {problem}"))
    }

    fn place(&self) -> String {
        let key = match self.row.get_ref(self.key) {
            Ok(ValueRef::Text(bytes)) => format!("{:?}", String::from_utf8_lossy(bytes)),
            Ok(ValueRef::Integer(number)) => number.to_string(),
            Ok(ValueRef::Blob(bytes)) => bytes.iter().take(32).fold("x".to_owned(), |mut hex, byte| {
                // Writing to a string cannot fail.
                let _ = write!(hex, "{byte:02x}");
                hex
            }),
            _ => "without a name".to_owned(),
        };
        format!("table {}, row {key}", self.table)
    }

    fn value(&self, column: &str) -> Result<ValueRef<'r>, Fault> {
        Ok(self.row.get_ref(column)?)
    }

    fn wrong_type(&self, column: &str, value: ValueRef<'_>, wanted: &str) -> Fault {
        self.damage(column, format_args!("is {}, not {wanted}", value.data_type()))
    }

    /// Text, or NULL.
    pub(crate) fn maybe_text(&self, column: &str) -> Result<Option<Arc<str>>, Fault> {
        match self.value(column)? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Some(text.into())),
                Err(problem) => Err(self.damage(column, format_args!("is no UTF-8: {problem}"))),
            },
            other => Err(self.wrong_type(column, other, "text")),
        }
    }

    /// Text.
    pub(crate) fn text(&self, column: &str) -> Result<Arc<str>, Fault> {
        self.maybe_text(column)?.ok_or_else(|| self.damage(column, "is missing"))
    }

    /// A name of some sort, or NULL.
    pub(crate) fn maybe_name<N: TryFrom<String, Error = NameError>>(
        &self,
        column: &str,
    ) -> Result<Option<N>, Fault> {
        let Some(text) = self.maybe_text(column)? else { return Ok(None) };
        N::try_from(text.to_string())
            .map(Some)
            .map_err(|problem| self.damage(column, format_args!("is no name: {problem}")))
    }

    /// A name of some sort.
    pub(crate) fn name<N: TryFrom<String, Error = NameError>>(&self, column: &str) -> Result<N, Fault> {
        self.maybe_name(column)?.ok_or_else(|| self.damage(column, "is missing"))
    }

    /// A whole number.
    pub(crate) fn number(&self, column: &str) -> Result<i64, Fault> {
        match self.value(column)? {
            ValueRef::Integer(number) => Ok(number),
            other => Err(self.wrong_type(column, other, "a whole number")),
        }
    }

    /// A fence, or NULL.
    pub(crate) fn maybe_fence(&self, column: &str) -> Result<Option<Fence>, Fault> {
        match self.value(column)? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(number) => {
                match u64::try_from(number).ok().and_then(|n| Fence::new(n).ok()) {
                    Some(fence) => Ok(Some(fence)),
                    None => Err(self
                        .damage(column, format_args!("is {number}, which is no fence: 1 to {}", Fence::MAX))),
                }
            }
            other => Err(self.wrong_type(column, other, "a fence")),
        }
    }

    /// A fence.
    pub(crate) fn fence(&self, column: &str) -> Result<Fence, Fault> {
        self.maybe_fence(column)?.ok_or_else(|| self.damage(column, "is missing"))
    }

    /// A moment of the boot clock.
    pub(crate) fn moment(&self, column: &str) -> Result<Moment, Fault> {
        let nanos = self.number(column)?;
        let nanos =
            u64::try_from(nanos).map_err(|_| self.damage(column, format_args!("is {nanos}: no moment")))?;
        Ok(Moment::from_nanos(nanos))
    }

    /// Bytes.
    pub(crate) fn bytes(&self, column: &str) -> Result<&'r [u8], Fault> {
        match self.value(column)? {
            ValueRef::Blob(bytes) => Ok(bytes),
            other => Err(self.wrong_type(column, other, "bytes")),
        }
    }

    /// The 16 bytes of an attempt id.
    pub(crate) fn attempt(&self, column: &str) -> Result<AttemptId, Fault> {
        let bytes = self.bytes(column)?;
        let bytes = <[u8; 16]>::try_from(bytes)
            .map_err(|_| self.damage(column, format_args!("has {} bytes instead of 16", bytes.len())))?;
        Ok(AttemptId::from_bytes(bytes))
    }

    /// The same, or none.
    pub(crate) fn maybe_attempt(&self, column: &str) -> Result<Option<AttemptId>, Fault> {
        if self.value(column)? == ValueRef::Null { Ok(None) } else { self.attempt(column).map(Some) }
    }

    /// A trace; none if it is NULL or no valid one: it is nobody's business to repair those.
    pub(crate) fn trace(&self, column: &str) -> Result<TraceContext, Fault> {
        Ok(self.maybe_text(column)?.map_or(TraceContext::NONE, |text| TraceContext::parse(&text)))
    }

    /// Columns that must be empty since the one they belong to is.
    pub(crate) fn nothing<const N: usize>(&self, columns: [&str; N]) -> Result<(), Fault> {
        for column in columns {
            if self.value(column)? != ValueRef::Null {
                return Err(self.damage(column, "belongs to a value that is missing"));
            }
        }
        Ok(())
    }
}
