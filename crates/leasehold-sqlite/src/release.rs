//! Release, by the holder and by force: the ends of a term that somebody asks for.

use crate::{
    db::{Db, Keep, Verdict},
    error::Failure,
    note,
    row::{Row, next_turn},
    standing::Judge,
};
use leasehold_core::{
    Claim, Force, LeaseName, Parting, Predecessor, Release, ReplicaId, TraceContext, Verb, bounds,
};

/// Ends a claim. Rules 3 and 5.
pub(crate) fn release(db: &mut Db, claim: &Claim, parting: &Parting) -> Release {
    let site = db.site.clone();
    let done = db.write(Keep::ThroughPowerLoss, |tx, site, now| {
        let mut standing = Judge::new(site, now).standing(&claim.name, Row::find(tx, &claim.name)?)?;
        if !standing.holds(claim) {
            return Ok(Verdict::Unchanged(Release::NotHolder(standing.not_holder())));
        }
        let fate = if parting.heir.is_some() { Predecessor::HandedOff } else { Predecessor::Released };
        standing.end(&parting.trace, fate);
        standing.bequeath(parting, now, site);
        note::leave(tx, &claim.name, parting.note.as_ref())?;
        if let Some(row) = standing.row(next_turn(tx)?) {
            row.save(tx)?;
        }
        Ok(Verdict::Turned(Release::Released))
    });
    done.unwrap_or_else(|Failure { fault, perhaps_done }| {
        let error = fault.told(&site, Verb::Release, Some(&claim.name));
        if perhaps_done { Release::Unknown(error) } else { Release::Refused(error) }
    })
}

/// Ends whatever claim lives. A reservation for an heir is no claim, and stays.
pub(crate) fn force(db: &mut Db, name: &LeaseName, by: &ReplicaId, reason: &str) -> Force {
    let site = db.site.clone();
    let mut force = || -> Result<Force, Failure> {
        bounds::reason(reason)?;
        db.write(Keep::ThroughPowerLoss, |tx, site, now| {
            let mut standing = Judge::new(site, now).standing(name, Row::find(tx, name)?)?;
            let Some(term) = &standing.term else { return Ok(Verdict::Unchanged(Force::Vacant)) };
            let (fence, replica) = (term.claim.fence, term.claim.replica.clone());
            let (by, reason) = (by.clone(), reason.into());
            standing.end(&TraceContext::NONE, |ended| Predecessor::Forced { ended, by, reason });
            note::leave(tx, name, None)?;
            if let Some(row) = standing.row(next_turn(tx)?) {
                row.save(tx)?;
            }
            Ok(Verdict::Turned(Force::Forced { fence, replica }))
        })
    };
    force().unwrap_or_else(|Failure { fault, perhaps_done }| {
        let error = fault.told(&site, Verb::ForceRelease, Some(name));
        if perhaps_done { Force::Unknown(error) } else { Force::Refused(error) }
    })
}
