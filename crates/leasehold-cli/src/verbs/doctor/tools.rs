//! Which tool for which writes, as far as the store decides it: the rows of `docs/choosing.md` that begin with its kind.

/// Where the writes go, and what to use then: the strongest first.
pub(super) type Tool = (&'static str, &'static str);

const POSTGRES: [Tool; 3] = [
    (
        "writes to this database, in one short transaction",
        "exclusive: the lock and the write are one transaction",
    ),
    (
        "writes to this database, of many jobs",
        "row claims: claim, work, and finish in the transaction of the result",
    ),
    ("writes to this database, of longer work", "a lease, and fenced in each transaction"),
];
const REDIS: [Tool; 1] =
    [("writes to this Redis", "a lease, and Fenced: the check and the write are one script")];
const ELSEWHERE: [Tool; 2] = [
    ("files, a remote command", "a lease, and leasehold fence check … -- CMD"),
    ("a service of yours", "a lease, and the token in each request"),
];

/// The tools for a kind of store.
pub(super) fn tools(kind: &str) -> impl Iterator<Item = Tool> {
    let own: &[Tool] = match kind {
        "postgres" => &POSTGRES,
        "redis" => &REDIS,
        _ => &[],
    };
    own.iter().chain(&ELSEWHERE).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page says no less than the program: each tool stands in a row for the same writes.
    #[test]
    fn the_page_that_helps_to_choose_agrees() {
        let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/choosing.md"));
        let rows: Vec<Vec<&str>> = page
            .lines()
            .filter(|line| line.starts_with("| "))
            .map(|line| line.split('|').map(str::trim).collect())
            .filter(|cells: &Vec<&str>| cells.len() == 7)
            .collect();
        let agrees = |place: &str, work: &str, tool: &[&str]| {
            rows.iter().any(|row| {
                row[1].starts_with(place)
                    && row[2].contains(work)
                    && tool.iter().all(|word| row[4].contains(word))
            })
        };
        assert!(agrees("one PostgreSQL database", "one short transaction", &["exclusive"]));
        assert!(agrees("one PostgreSQL database, many jobs", "", &["row claims"]));
        assert!(agrees("one PostgreSQL database", "longer than a transaction", &["lease", "fenced"]));
        assert!(agrees("Redis", "any", &["lease", "Fenced"]));
        assert!(agrees("files, a remote command", "any", &["lease", "leasehold fence check … -- CMD"]));
        assert!(agrees("a service of yours", "any", &["lease", "the token in each request"]));
        assert_eq!(tools("postgres").count(), 5);
        assert_eq!(tools("sqlite").count(), 2);
    }
}
