//! `bb8-postgres`, which asks a connection whether it lives, and nothing more.

use anyhow::Result;
use bb8::PooledConnection;
use bb8_postgres::PostgresConnectionManager;
use tokio_postgres::NoTls;

use crate::{
    direct::{Session, said_yes},
    trial::{self, Finding, Pool},
};

type Manager = PostgresConnectionManager<NoTls>;

struct Bb8(bb8::Pool<Manager>);

impl Pool for Bb8 {
    type Lent = PooledConnection<'static, Manager>;

    async fn borrow(&self) -> Result<Self::Lent> {
        Ok(self.0.get_owned().await?)
    }

    async fn ask(lent: &mut Self::Lent, statement: &'static str) -> Result<bool> {
        said_yes(&lent.simple_query(statement).await?)
    }

    fn is_back(&self) -> bool {
        self.0.state().idle_connections == 1
    }

    async fn close(self) -> Result<()> {
        Ok(())
    }
}

pub(crate) async fn findings(url: &str, eyes: &Session) -> Result<Vec<Finding>> {
    let manager = Manager::new_from_stringlike(url, NoTls)?;
    let pool = Bb8(bb8::Pool::builder().max_size(1).build(manager).await?);
    let named = ("bb8-postgres", "tests what it lends, the default");
    Ok(vec![trial::of(pool, named, eyes, trial::forget::<Bb8>).await?])
}
