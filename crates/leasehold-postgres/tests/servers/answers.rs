//! Answers that are lost, and what is then known.

use crate::common::{bid, eventually, let_go, open, renew, round, server, win, with};
use leasehold_core::{Acquire, Admit, Fence, FenceGate, LeaseStore, Parting, Release, Renew, StoreErrorKind};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::{
    Proxy,
    faults::Direction,
    postgres::{Postgres, framing},
};
use std::time::Duration;
use tokio::time::timeout;

/// A store whose opening has left nothing on its way: the end of a connection is a command, too.
async fn quiet(address: &str) -> PostgresStore {
    let store = open(address).await;
    round(&store, "before").await;
    store
}

/// The attempt id makes it the same acquisition: it is asked again in the same call, and gets its own lease.
#[tokio::test]
async fn an_acquire_whose_answer_is_lost_is_asked_again_and_gets_the_same_lease() {
    let server = server(Postgres::new()).await;
    let proxy = Proxy::framed(server.addr(), framing()).await.unwrap();
    let store = quiet(&server.url_at(proxy.addr())).await;
    proxy.lose_reply(1);
    let granted = win(&store, "job").await;
    assert_eq!(granted.claim.fence.get(), 1, "the first sending made it");
    assert_eq!(proxy.broken(), 1);
    proxy.lose_reply(1);
    assert!(matches!(renew(&store, &granted.claim).await, Renew::Renewed { .. }));
    let_go(&store, &granted.claim).await;
}

/// I7: a release asked twice would be told that the claim is over, and by whom it cannot say.
#[tokio::test]
async fn a_release_whose_answer_is_lost_is_unknown_and_was_done() {
    let server = server(Postgres::new()).await;
    let proxy = Proxy::framed(server.addr(), framing()).await.unwrap();
    let store = quiet(&server.url_at(proxy.addr())).await;
    let granted = win(&store, "job").await;
    proxy.lose_reply(1);
    let answer = store.release(&granted.claim, &Parting::default()).await;
    assert!(matches!(answer, Release::Unknown(_)), "{answer:?}");
    assert_eq!(store.inspect(&granted.claim.name).await.unwrap().claim(), None);
}

/// I7: the first sending was carried out, and the second is refused: nobody may say that nothing was done.
#[tokio::test]
async fn a_refusal_of_the_second_sending_is_no_refusal_of_the_first() {
    let server = server(Postgres::new()).await;
    let proxy = Proxy::framed(server.addr(), framing()).await.unwrap();
    let store = quiet(&server.url_at(proxy.addr())).await;
    // Each sending but the first meets a function that refuses.
    server.sql(
        "CREATE SEQUENCE leasehold.sendings; \
         ALTER FUNCTION leasehold.acquire RENAME TO acquire_once; \
         CREATE FUNCTION leasehold.acquire(text, text, bytea, bigint, bigint, bigint, text, OUT answer text, \
           OUT fence bigint, OUT holder text, OUT micros bigint, OUT fate text, OUT past_fence bigint, \
           OUT past_replica text, OUT past_trace text, OUT forced_by text, OUT forced_why text, OUT note bytea, \
           OUT note_from bigint, OUT problem text) RETURNS SETOF record LANGUAGE plpgsql AS $$ BEGIN \
           IF nextval('leasehold.sendings') > 1 THEN RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'no more'; \
           END IF; RETURN QUERY SELECT * FROM leasehold.acquire_once($1, $2, $3, $4, $5, $6, $7); END $$",
    );
    proxy.lose_reply(1);
    match store.acquire(&bid("job", "me")).await {
        Acquire::Unknown(error) => assert_eq!(*error.kind(), StoreErrorKind::Denied),
        other => panic!("the first sending made it: {other:?}"),
    }
    assert_eq!(server.sql("SELECT count(*) FROM leasehold.lease WHERE replica = 'me'"), "1");
    let error = match store.acquire(&bid("another", "me")).await {
        Acquire::Refused(error) => error,
        other => panic!("it was sent once, and refused: {other:?}"),
    };
    assert!(error.to_string().contains("no more"), "{error}");
}

/// B19: a connection that is dead both ways while each side believes in it.
#[tokio::test]
async fn a_silent_connection_is_given_up_whether_its_callers_wait_or_not() {
    let server = server(Postgres::new()).await;
    let proxy = Proxy::framed(server.addr(), framing()).await.unwrap();
    let address = with(&server.url_at(proxy.addr()), "response_timeout=200ms");
    for waits in [true, false] {
        let store = open(&address).await;
        let granted = win(&store, &format!("job {waits}")).await;
        proxy.blackhole(Direction::Both);
        if waits {
            match renew(&store, &granted.claim).await {
                Renew::Unknown(error) => {
                    assert!(matches!(error.kind(), StoreErrorKind::TimedOut(_)), "{error}");
                }
                other => panic!("nobody knows: {other:?}"),
            }
        } else {
            let call = timeout(Duration::from_millis(20), renew(&store, &granted.claim)).await;
            call.expect_err("nobody answers");
        }
        assert!(proxy.swallowed() > 0);
        let before = proxy.connections();
        proxy.heal();
        // What was open stays dead: it lost bytes. New connections work.
        eventually("a new connection is used", async || {
            let call = timeout(Duration::from_millis(500), renew(&store, &granted.claim)).await;
            matches!(call, Ok(Renew::Renewed { .. }))
        })
        .await;
        assert!(proxy.connections() > before);
    }
}

/// Whoever gives up while the connection is made leaves it to the next one.
#[tokio::test]
async fn callers_that_are_too_impatient_to_connect_do_not_keep_others_from_it() {
    let server = server(Postgres::new()).await;
    let proxy = Proxy::framed(server.addr(), framing()).await.unwrap();
    let store = quiet(&server.url_at(proxy.addr())).await;
    let granted = win(&store, "job").await;
    // A connection takes several turns: no caller waits for all of them.
    proxy.delay(Direction::Both, Duration::from_millis(30));
    proxy.reset();
    let mut tries = 0;
    eventually("it is renewed", async || {
        tries += 1;
        let call = timeout(Duration::from_millis(100), renew(&store, &granted.claim)).await;
        matches!(call, Ok(Renew::Renewed { .. }))
    })
    .await;
    assert!(tries > 1, "the first one was to give up");
}

/// B38's kin: every command of a round is cut once.
#[tokio::test]
async fn a_cut_at_any_command_leaves_the_store_usable() {
    let server = server(Postgres::new()).await;
    let proxy = Proxy::framed(server.addr(), framing()).await.unwrap();
    let store = quiet(&server.url_at(proxy.addr())).await;
    for k in 1..8 {
        proxy.cut_after_command(k);
        for n in 0..4 {
            let name = format!("job {k} {n}");
            let answer = store.acquire(&bid(&name, "me")).await;
            if let Acquire::Granted(granted) = answer {
                drop(renew(&store, &granted.claim).await);
                drop(store.release(&granted.claim, &Parting::default()).await);
            }
        }
        proxy.heal();
        round(&store, &format!("after {k}")).await;
    }
    assert!(proxy.broken() >= 6);
}

/// After a restore the counter may lag behind the mark of a resource. A fence below the mark is stale then, issued or not.
#[tokio::test]
async fn below_its_mark_a_resource_says_stale_whatever_was_issued() {
    let server = server(Postgres::new()).await;
    let store = open(&server.url()).await;
    server.sql("INSERT INTO leasehold.mark VALUES ('file', 'job', 7)");
    let ask = async |fence: u64| {
        store.admit(&"file".try_into().unwrap(), &"job".try_into().unwrap(), Fence::new(fence).unwrap()).await
    };
    for issued in ["", "UPDATE leasehold.lease SET counter = 3"] {
        server.sql(issued);
        for presented in [1, 4, 6] {
            match ask(presented).await {
                Admit::Stale(stale) => {
                    assert_eq!((stale.presented.get(), stale.highest.get()), (presented, 7));
                }
                other => panic!("{presented}: {other:?}"),
            }
        }
        for absurd in [7, 8] {
            let answer = ask(absurd).await;
            assert!(
                matches!(&answer, Admit::Refused(e) if matches!(e.kind(), StoreErrorKind::NeverIssued { .. })),
                "{absurd}: {answer:?}"
            );
        }
        round(&store, "job").await;
    }
    assert_eq!(server.sql("SELECT fence FROM leasehold.mark"), "7");
}
