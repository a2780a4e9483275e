//! A table with a claim column, and the statements on it.

use super::RowKey;
use crate::identifier::{Identifier, TableName};
use std::{fmt, marker::PhantomData};

/// A table whose rows can be claimed.
///
/// It needs three columns, whose statement is [`columns_sql`](Self::columns_sql), and a condition that says which rows are to
/// be worked on. Conditions and assignments are SQL of the program's own, so they are `'static`; names go through
/// [`Identifier`] and [`TableName`].
///
/// ```
/// use leasehold_postgres::ClaimTable;
///
/// # fn main() -> Result<(), leasehold_postgres::IdentifierError> {
/// let jobs = ClaimTable::<i64>::new("job".try_into()?, "id".try_into()?)
///     .ready("done_at IS NULL")
///     .order("priority DESC, id")
///     .done("done_at = clock_timestamp()");
/// println!("{}", jobs.columns_sql());
/// # Ok(())
/// # }
/// ```
pub struct ClaimTable<K> {
    table: TableName,
    key: Identifier,
    ready: &'static str,
    order: Option<&'static str>,
    done: Option<&'static str>,
    statements: Statements,
    keys: PhantomData<fn() -> K>,
}

#[derive(Clone, Default)]
struct Statements {
    table: String,
    claim: String,
    renew: String,
    finish: String,
    give_back: String,
    look: String,
}

impl<K: RowKey> ClaimTable<K> {
    /// The rows of `table`, told apart by `key`, which must be unique. Every row is ready, and is deleted when it is finished.
    #[must_use]
    pub fn new(table: TableName, key: Identifier) -> Self {
        let plain = Self {
            table,
            key,
            ready: "true",
            order: None,
            done: None,
            statements: Statements::default(),
            keys: PhantomData,
        };
        plain.written()
    }

    /// Which rows are to be worked on: a condition on the row.
    #[must_use]
    pub fn ready(mut self, condition: &'static str) -> Self {
        self.ready = condition;
        self.written()
    }

    /// Which come first, as after `ORDER BY`. An index that begins like this keeps a claim cheap.
    #[must_use]
    pub fn order(mut self, by: &'static str) -> Self {
        self.order = Some(by);
        self.written()
    }

    /// What a finished row becomes, as after `SET`. It must not be ready any more.
    #[must_use]
    pub fn done(mut self, assignments: &'static str) -> Self {
        self.done = Some(assignments);
        self.written()
    }

    /// The statement that adds the three columns. It does not rewrite the table.
    #[must_use]
    pub fn columns_sql(&self) -> String {
        format!(
            "ALTER TABLE {} ADD COLUMN claim_fence bigint NOT NULL DEFAULT 0, ADD COLUMN claimed_by text, \
             ADD COLUMN claimed_until timestamptz",
            self.table
        )
    }

    fn written(mut self) -> Self {
        let Self { table, key, ready, .. } = &self;
        let order = self.order.map_or_else(String::new, |by| format!(" ORDER BY {by}"));
        let free = "claimed_by = NULL, claimed_until = NULL";
        let mine = format!("t.{key} = $1 AND t.claim_fence = $2 AND t.claimed_until IS NOT NULL");
        let each = "unnest($1, $2) WITH ORDINALITY AS c (key, fence, at)";
        let theirs = format!("t.{key} = c.key AND t.claim_fence = c.fence AND t.claimed_until IS NOT NULL");
        self.statements = Statements {
            // Materialized: chosen once, however the planner joins.
            claim: format!(
                "WITH due AS MATERIALIZED (
                   SELECT {key} AS key, claimed_until FROM {table}
                   WHERE ({ready}) AND (claimed_until IS NULL OR claimed_until <= clock_timestamp()){order}
                   LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED)
                 UPDATE {table} AS t SET claim_fence = t.claim_fence + 1, claimed_by = $2,
                   claimed_until = clock_timestamp() + $3 * interval '1 millisecond'
                 FROM due WHERE t.{key} = due.key
                 RETURNING t.{key}, t.claim_fence, due.claimed_until IS NOT NULL"
            ),
            renew: format!(
                "UPDATE {table} AS t
                 SET claimed_until = greatest(t.claimed_until, clock_timestamp() + $3 * interval '1 millisecond')
                 FROM {each} WHERE {theirs} RETURNING c.at"
            ),
            finish: match self.done {
                Some(done) => format!("UPDATE {table} AS t SET {free}, {done} WHERE {mine}"),
                None => format!("DELETE FROM {table} AS t WHERE {mine}"),
            },
            give_back: format!("UPDATE {table} AS t SET {free} FROM {each} WHERE {theirs}"),
            look: format!("SELECT claim_fence FROM {table} WHERE {key} = $1"),
            table: table.to_string(),
        };
        self
    }
}

impl<K> ClaimTable<K> {
    pub(super) fn table(&self) -> &str {
        &self.statements.table
    }

    /// The statement that claims: `$1` rows for `$2` (text) for `$3` milliseconds. It answers with the key, the fence, and whether
    /// a claim before had expired.
    #[must_use]
    pub fn claim_sql(&self) -> &str {
        &self.statements.claim
    }

    /// The statement that renews the keys `$1` under the fences `$2`, two arrays, for `$3` milliseconds. It answers with the places of
    /// those that it renewed, from 1.
    #[must_use]
    pub fn renew_sql(&self) -> &str {
        &self.statements.renew
    }

    /// The statement that finishes the row `$1` under the fence `$2`.
    #[must_use]
    pub fn finish_sql(&self) -> &str {
        &self.statements.finish
    }

    /// The statement that gives back the keys `$1` under the fences `$2`, two arrays.
    #[must_use]
    pub fn give_back_sql(&self) -> &str {
        &self.statements.give_back
    }

    pub(super) fn look_sql(&self) -> &str {
        &self.statements.look
    }
}

impl<K> Clone for ClaimTable<K> {
    fn clone(&self) -> Self {
        Self {
            table: self.table.clone(),
            key: self.key.clone(),
            statements: self.statements.clone(),
            keys: PhantomData,
            ..*self
        }
    }
}

impl<K> fmt::Debug for ClaimTable<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClaimTable({}, ready: {})", self.table, self.ready)
    }
}
