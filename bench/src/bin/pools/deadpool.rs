//! `deadpool-postgres`, which cleans when it lends, if at all.

use anyhow::Result;
use deadpool_postgres::{Manager, ManagerConfig, Object, RecyclingMethod};
use tokio_postgres::NoTls;

use crate::{
    direct::{Session, said_yes},
    trial::{self, Finding, Pool},
};

struct Deadpool(deadpool_postgres::Pool);

impl Pool for Deadpool {
    type Lent = Object;

    async fn borrow(&self) -> Result<Object> {
        Ok(self.0.get().await?)
    }

    async fn ask(lent: &mut Object, statement: &'static str) -> Result<bool> {
        said_yes(&lent.simple_query(statement).await?)
    }

    fn is_back(&self) -> bool {
        self.0.status().available == 1
    }

    async fn close(self) -> Result<()> {
        self.0.close();
        Ok(())
    }
}

pub(crate) async fn findings(url: &str, eyes: &Session) -> Result<Vec<Finding>> {
    let own = "SELECT pg_advisory_unlock_all()".to_owned();
    let mut findings = Vec::new();
    for (way, recycling_method) in [
        ("`RecyclingMethod::Fast`, the default", RecyclingMethod::Fast),
        ("`RecyclingMethod::Verified`", RecyclingMethod::Verified),
        ("`RecyclingMethod::Clean`", RecyclingMethod::Clean),
        ("`RecyclingMethod::Custom(\"SELECT pg_advisory_unlock_all()\")`", RecyclingMethod::Custom(own)),
    ] {
        let manager = Manager::from_config(url.parse()?, NoTls, ManagerConfig { recycling_method });
        let pool = Deadpool(deadpool_postgres::Pool::builder(manager).max_size(1).build()?);
        let forget = trial::forget::<Deadpool>;
        findings.push(trial::of(pool, ("deadpool-postgres", way), eyes, forget).await?);
    }
    Ok(findings)
}
