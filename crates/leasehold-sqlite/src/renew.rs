//! Renew: many claims in one transaction, each answered for itself.

use crate::{
    acquire::extend,
    db::{Db, Keep, Verdict},
    error::{Failure, Fault},
    row::Row,
    site::Site,
    standing::Judge,
};
use leasehold_core::{Renew, Renewal, Verb, bounds};
use rusqlite::Connection;

/// Renews claims. Rule 3.
pub(crate) fn renew(db: &mut Db, renewals: &[Renewal]) -> Vec<Renew> {
    let site = db.site.clone();
    // A renewal that a loss of power undoes was for a claim that the loss of power ended.
    let done = db.write(Keep::ThroughCrash, |tx, site, now| {
        let mut judge = Judge::new(site, now);
        let answers: Vec<_> =
            renewals.iter().map(|renewal| renew_one(tx, &mut judge, renewal, site)).collect();
        let any = answers.iter().any(|answer| matches!(answer, Renew::Renewed { .. }));
        Ok(if any { Verdict::Changed(answers) } else { Verdict::Unchanged(answers) })
    });
    done.unwrap_or_else(|Failure { fault, perhaps_done }| {
        // One fault for all: each claim's answer names its own lease.
        let error = fault.told(&site, Verb::Renew, None);
        let answer = |renewal: &Renewal| {
            let error = error.clone().on(&renewal.claim.name);
            if perhaps_done { Renew::Unknown(error) } else { Renew::Refused(error) }
        };
        renewals.iter().map(answer).collect()
    })
}

fn renew_one(conn: &Connection, judge: &mut Judge<'_>, renewal: &Renewal, site: &Site) -> Renew {
    let Renewal { claim, ttl } = renewal;
    let renewed = (|| -> Result<Renew, Fault> {
        bounds::ttl(*ttl)?;
        let standing = judge.standing(&claim.name, Row::find(conn, &claim.name)?)?;
        if !standing.holds(claim) {
            return Ok(Renew::NotHolder(standing.not_holder()));
        }
        extend(conn, &claim.name, judge.now.after(*ttl))?;
        Ok(Renew::Renewed { remaining: *ttl })
    })();
    renewed.unwrap_or_else(|fault| Renew::Refused(fault.told(site, Verb::Renew, Some(&claim.name))))
}
