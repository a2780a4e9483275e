//! What holds in every state, and what must be seen in some.

use super::{
    bounds::Bounds,
    world::{Leader, Replica, Worker, World},
};
use leasehold_core::handoff::Ending;
use stateright::Property;

pub(super) fn all() -> Vec<Property<Bounds>> {
    vec![
        Property::always("I3: nobody renews a claim that is not in the store", |_, world: &World| {
            leaders(world).all(|(r, leader)| !leader.renews || holds(world, r, leader))
        }),
        Property::always("I6: no release before the worker was joined", |_, world: &World| {
            world.broken != Some("I6")
        }),
        Property::always("I7: an unknown release is never reported as done", |_, world: &World| {
            world.broken != Some("I7")
        }),
        Property::always("I8: whoever works holds the lease", |_, world: &World| {
            leaders(world).all(|(r, leader)| {
                matches!(leader.worker, Worker::Killed | Worker::Joined) || holds(world, r, leader)
            })
        }),
        Property::always("I8: only the heir is granted in its window", |_, world: &World| {
            world.broken != Some("heir")
        }),
        Property::always("I8: a handoff ends in its time", |bounds: &Bounds, world: &World| {
            let longest = u64::try_from(bounds.plan.longest(bounds.within).as_millis()).expect("short");
            leaders(world).all(|(_, leader)| {
                leader.incumbent.handoff().is_none() || world.now < leader.asked_at + longest
            })
        }),
        Property::always("I8: after a handoff the worker works, or the term is over", |_, world: &World| {
            leaders(world).all(|(_, leader)| {
                let over = leader.incumbent.is_over();
                let idle = leader.incumbent.handoff().is_none() && !over;
                (!idle || leader.worker == Worker::Works) && (!over || !leader.renews)
            })
        }),
        Property::always(
            "I8: a claim that nobody renews ends within its ttl",
            |bounds: &Bounds, world: &World| {
                let renewed = leaders(world).any(|(r, leader)| leader.renews && holds(world, r, leader));
                let ends =
                    world.store.expires.is_some_and(|at| at > world.now && at <= world.now + bounds.ttl);
                world.store.holder.is_none() || renewed || ends
            },
        ),
        Property::always("I9: a note is given to the very next term only", |_, world: &World| {
            let given = &world.given;
            given.iter().enumerate().all(|(i, (note, term))| {
                *term == note + 1 && given[..i].iter().all(|(earlier, _)| earlier != note)
            })
        }),
        Property::sometimes("done", |_, world: &World| ended(world, |e| matches!(e, Ending::Done { .. }))),
        Property::sometimes("aborted", |_, world: &World| ended(world, |e| matches!(e, Ending::Aborted(_)))),
        Property::sometimes("released", |_, world: &World| {
            ended(world, |e| matches!(e, Ending::Released(_)))
        }),
        Property::sometimes("note inherited", |_, world: &World| !world.given.is_empty()),
    ]
}

fn leaders(world: &World) -> impl Iterator<Item = (usize, &Leader)> {
    world.replicas.iter().enumerate().filter_map(|(r, replica)| match replica {
        Replica::Leader(leader) => Some((r, leader)),
        _ => None,
    })
}

fn holds(world: &World, r: usize, leader: &Leader) -> bool {
    world.store.holder == Some((r, leader.fence))
}

fn ended(world: &World, how: impl Fn(&Ending) -> bool) -> bool {
    world.endings.iter().any(how)
}
