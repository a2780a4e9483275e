//! Writes behind a fence, in the same transaction (I1).

use crate::support::{client, until, with_layout, within};
use leasehold_core::{Fence, LeaseName, ResourceName};
use leasehold_postgres::{
    FenceColumn, FenceTrigger, FencedError, Identifier, Mark, TableName, fenced, present,
};
use tokio_postgres::{Client, IsolationLevel, types::Type};

const BLOCKED: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";

fn fence(number: u64) -> Fence {
    Fence::new(number).expect("a fence")
}

fn invoices() -> (ResourceName, LeaseName) {
    (ResourceName::new("invoices").expect("a name"), LeaseName::new("it's a run").expect("a name"))
}

/// One write under a fence, in a transaction of its own.
async fn write(client: &mut Client, number: u64, level: IsolationLevel) -> Result<(), FencedError> {
    let (resource, lease) = invoices();
    let tx = client.build_transaction().isolation_level(level).start().await?;
    fenced(&tx, &resource, &lease, fence(number)).await?;
    tx.execute("INSERT INTO invoice (fence) VALUES ($1)", &[&number.cast_signed()]).await?;
    Ok(tx.commit().await?)
}

const TABLE: &str = "CREATE TABLE invoice (id bigserial PRIMARY KEY, fence bigint)";

#[tokio::test]
async fn a_lower_fence_is_refused_and_its_transaction_cannot_be_committed_by_oversight() {
    let server = with_layout().await;
    server.sql(TABLE);
    let mut client = client(&server.url()).await;
    for level in [IsolationLevel::ReadCommitted, IsolationLevel::RepeatableRead, IsolationLevel::Serializable]
    {
        for number in [7, 7, 8] {
            write(&mut client, number, level).await.unwrap();
        }
        let refused = write(&mut client, 7, level).await.unwrap_err();
        assert!(
            matches!(refused, FencedError::Stale(stale) if (stale.presented, stale.highest) == (fence(7), fence(8)))
        );
        server.sql("TRUNCATE invoice, leasehold.mark");
    }
    write(&mut client, 8, IsolationLevel::ReadCommitted).await.unwrap();
    let (resource, lease) = invoices();
    let tx = client.transaction().await.unwrap();
    tx.execute("INSERT INTO invoice (fence) VALUES (7)", &[]).await.unwrap();
    let _ = fenced(&tx, &resource, &lease, fence(7)).await;
    assert!(tx.execute("INSERT INTO invoice (fence) VALUES (7)", &[]).await.is_err());
    let _ = tx.commit().await;
    assert_eq!(server.sql("SELECT count(*) FROM invoice"), "1");
    // Another lease has an order of its own.
    let other = LeaseName::new("other").unwrap();
    fenced(&client, &resource, &other, fence(1)).await.unwrap();
}

#[tokio::test]
async fn a_higher_fence_waits_for_the_lower_ones_transaction_and_what_comes_after_is_stale() {
    let server = with_layout().await;
    server.sql(TABLE);
    let (resource, lease) = invoices();
    let (mut old, mut same, mut new) =
        (client(&server.url()).await, client(&server.url()).await, client(&server.url()).await);
    for level in [IsolationLevel::ReadCommitted, IsolationLevel::RepeatableRead] {
        server.sql("TRUNCATE invoice, leasehold.mark");
        write(&mut old, 7, level).await.unwrap();
        let tx = old.build_transaction().isolation_level(level).start().await.unwrap();
        fenced(&tx, &resource, &lease, fence(7)).await.unwrap();
        // Its own sisters do not wait for it.
        within(write(&mut same, 7, level)).await.unwrap();
        let raising = tokio::spawn(async move {
            let done = write(&mut new, 8, IsolationLevel::ReadCommitted).await;
            (new, done)
        });
        until(&server, BLOCKED, "1").await;
        tx.execute("INSERT INTO invoice (fence) VALUES (7)", &[]).await.unwrap();
        tx.commit().await.unwrap();
        let (back, done) = within(raising).await.unwrap();
        done.unwrap();
        new = back;
        assert_eq!(server.sql("SELECT string_agg(fence::text, ' ' ORDER BY id) FROM invoice"), "7 7 7 8");
    }
}

#[tokio::test]
async fn a_snapshot_from_before_the_raise_cannot_get_past_it() {
    let server = with_layout().await;
    server.sql(TABLE);
    let (resource, lease) = invoices();
    let (mut old, mut new) = (client(&server.url()).await, client(&server.url()).await);
    for first in [Some(7), None] {
        server.sql("TRUNCATE invoice, leasehold.mark");
        if let Some(first) = first {
            write(&mut old, first, IsolationLevel::ReadCommitted).await.unwrap();
        }
        let level = IsolationLevel::RepeatableRead;
        let tx = old.build_transaction().isolation_level(level).start().await.unwrap();
        tx.query("SELECT count(*) FROM invoice", &[]).await.unwrap();
        write(&mut new, 8, IsolationLevel::ReadCommitted).await.unwrap();
        let refused = fenced(&tx, &resource, &lease, fence(7)).await.unwrap_err();
        assert!(matches!(refused, FencedError::Contended(_)), "{refused}");
        drop(tx);
        let again = write(&mut old, 7, level).await.unwrap_err();
        assert!(matches!(again, FencedError::Stale(_)), "{again}");
    }
}

#[tokio::test]
async fn many_writers_under_many_fences_commit_in_the_order_of_their_fences() {
    let server = with_layout().await;
    // The order of commits, as far as a table can tell it: each id is drawn behind the fence.
    server.sql(TABLE);
    let mut writers = Vec::new();
    for number in 1..=8 {
        let mut client = client(&server.url()).await;
        writers.push(tokio::spawn(async move {
            let level =
                if number % 2 == 0 { IsolationLevel::ReadCommitted } else { IsolationLevel::RepeatableRead };
            let mut written = 0;
            for _ in 0..20 {
                match write(&mut client, number, level).await {
                    Ok(()) => written += 1,
                    Err(FencedError::Stale(_)) => break,
                    Err(FencedError::Contended(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            written
        }));
    }
    let mut written = 0;
    for writer in writers {
        written += within(writer).await.unwrap();
    }
    assert_eq!(server.sql("SELECT count(*) FROM invoice"), written.to_string());
    let back = "SELECT count(*) FROM (SELECT fence < lag(fence) OVER (ORDER BY id) AS back FROM invoice) AS i WHERE back";
    assert_eq!(server.sql(back), "0");
    assert_eq!(server.sql("SELECT fence FROM leasehold.mark"), "8");
}

#[tokio::test]
async fn a_damaged_number_does_not_shut_everyone_out() {
    let server = with_layout().await;
    let client = client(&server.url()).await;
    let (resource, lease) = invoices();
    let mark = Mark::new(resource, lease).max_jump(100);
    mark.accept(&client, fence(1_000)).await.unwrap();
    mark.accept(&client, fence(1_100)).await.unwrap();
    let refused = mark.accept(&client, Fence::MAX).await.unwrap_err();
    assert!(matches!(refused, FencedError::TooFar(_)), "{refused}");
    assert!(refused.to_string().contains("more than 100 above 1100"), "{refused}");
    mark.accept(&client, fence(1_101)).await.unwrap();
}

#[tokio::test]
async fn a_database_without_the_marks_says_so() {
    let server = crate::support::server().await;
    let client = client(&server.url()).await;
    let (resource, lease) = invoices();
    let refused = fenced(&client, &resource, &lease, fence(1)).await.unwrap_err();
    assert!(refused.to_string().contains("doctor --migrate"), "{refused}");
}

#[tokio::test]
async fn a_row_remembers_its_own_fence() {
    let server = crate::support::server().await;
    server.sql("CREATE TABLE shard (id bigint PRIMARY KEY, fence bigint, load int); INSERT INTO shard VALUES (1), (2)");
    let id = |name: &str| Identifier::new(name).unwrap();
    let shards = FenceColumn::new(&TableName::new("public.shard").unwrap(), &id("id"), &id("fence"));
    let mut client = client(&server.url()).await;
    let accept = async |client: &mut Client, key: i64, number| {
        let tx = client.transaction().await?;
        shards.accept(&tx, &key, Type::INT8, fence(number)).await?;
        tx.execute("UPDATE shard SET load = load + 1 WHERE id = $1", &[&key]).await?;
        Ok::<_, FencedError>(tx.commit().await?)
    };
    accept(&mut client, 1, 5).await.unwrap();
    accept(&mut client, 1, 5).await.unwrap();
    accept(&mut client, 2, 1).await.unwrap();
    let stale = accept(&mut client, 1, 4).await.unwrap_err();
    assert!(matches!(stale, FencedError::Stale(stale) if stale.highest == fence(5)));
    let none = accept(&mut client, 3, 4).await.unwrap_err();
    assert!(none.to_string().contains("no row with this key in \"public\".\"shard\""), "{none}");
    assert_eq!(server.sql("SELECT string_agg(fence::text, ' ' ORDER BY id) FROM shard"), "5 1");
}

#[tokio::test]
async fn a_guarded_table_takes_writes_only_under_a_fence_whoever_writes() {
    let server = with_layout().await;
    server.sql(TABLE);
    let (resource, lease) = invoices();
    let trigger = FenceTrigger::new(TableName::new("invoice").unwrap(), resource, lease);
    server.sql(&trigger.to_string());
    let mut client = client(&server.url()).await;
    trigger.install(&client).await.unwrap();
    // Somebody who knows nothing of fences, with no right to the marks.
    server.sql("CREATE ROLE app LOGIN; GRANT ALL ON invoice, invoice_id_seq TO app; SET ROLE app; \
                BEGIN; SELECT set_config('leasehold.fence', '7', true); INSERT INTO invoice (fence) VALUES (7); COMMIT");
    for write in ["INSERT INTO invoice (fence) VALUES (7)", "DELETE FROM invoice", "TRUNCATE invoice"] {
        let refused = FencedError::from(client.batch_execute(write).await.unwrap_err());
        assert!(matches!(refused, FencedError::NoFence(_)), "{write}: {refused}");
        assert!(
            refused
                .to_string()
                .contains("public.invoice takes writes only under a fence of lease it's a run"),
            "{refused}"
        );
    }
    for (number, accepted) in [(8, true), (7, false), (8, true)] {
        let tx = client.transaction().await.unwrap();
        present(&tx, fence(number)).await.unwrap();
        let written = tx.execute("UPDATE invoice SET fence = $1", &[&number.cast_signed()]).await;
        match written.map_err(FencedError::from) {
            Ok(_) if accepted => tx.commit().await.unwrap(),
            Err(FencedError::Stale(stale)) if !accepted => assert_eq!(stale.highest, fence(8)),
            other => panic!("{number}: {other:?}"),
        }
    }
    // What was presented ended with its transaction.
    assert!(client.execute("UPDATE invoice SET fence = 1", &[]).await.is_err());
    assert_eq!(server.sql("SELECT fence FROM invoice"), "8");
}
