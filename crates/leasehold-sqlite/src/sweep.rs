//! Removing what ended processes left behind.

use crate::{db::Db, row::number, witness};

/// Removes the witnesses of ended processes that no living claim needs as a proof any more. What cannot be removed
/// now is removed another time.
pub(crate) fn sweep(db: &mut Db) {
    let stopped = witness::stopped(&db.site.place);
    if stopped.is_empty() {
        return;
    }
    let needed = db.read(|conn, site, now| {
        let sql = "SELECT count(*) FROM lease WHERE witness = ?1 AND boot = ?2 AND until > ?3";
        let mut count = conn.prepare_cached(sql)?;
        let mut unneeded = Vec::new();
        for name in &stopped {
            let claims: i64 =
                count.query_row((name, &*site.boot, number(now.as_nanos())), |row| row.get(0))?;
            if claims == 0 {
                unneeded.push(name.clone());
            }
        }
        Ok(unneeded)
    });
    // The process is gone, so no claim can begin to need its witness between the look and the removal.
    for name in needed.unwrap_or_default() {
        witness::bury(&db.site.place, &name);
    }
}
