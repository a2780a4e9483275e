//! Servers are started on free ports, killed, frozen and restarted, here with a small server that this binary plays.
#![cfg(unix)]

use leasehold_testkit::{
    process::{Process, is_role},
    server::{Ready, Recipe, Server, StartError},
};
use std::{
    ffi::OsString,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

const WITHIN: Duration = Duration::from_secs(20);

/// Keeps a number in its directory, adds one at each connection, and answers with it.
fn counter(ready: Ready) -> Recipe {
    let role = Process::role("role_of_a_counter");
    Recipe {
        program: role.get_program().into(),
        args: Arc::new(|dir, port| {
            let mut args: Vec<OsString> =
                Process::role("role_of_a_counter").get_args().map(Into::into).collect();
            // The harness takes no arguments of ours; it passes over filters that match nothing.
            args.extend([format!("port={port}").into(), format!("dir={}", dir.display()).into()]);
            args
        }),
        env: role.get_envs().filter_map(|(key, value)| Some((key.into(), value?.into()))).collect(),
        user: None,
        ready,
        within: WITHIN,
    }
}

#[test]
#[ignore = "a role that other tests run as a process"]
fn role_of_a_counter() {
    if !is_role("role_of_a_counter") {
        return;
    }
    let arg = |key: &str| std::env::args().find_map(|arg| arg.strip_prefix(key).map(str::to_owned)).unwrap();
    let file = PathBuf::from(arg("dir=")).join("count");
    let listener = TcpListener::bind(("127.0.0.1", arg("port=").parse().unwrap())).unwrap();
    println!("serving");
    std::io::stdout().flush().unwrap();
    loop {
        let (mut client, _) = listener.accept().unwrap();
        // Whoever only looks whether the port is open has gone by now, and does not count.
        if client.read(&mut [0]).is_ok_and(|read| read == 1) {
            let count: u64 = std::fs::read_to_string(&file).map_or(0, |count| count.parse().unwrap()) + 1;
            std::fs::write(&file, count.to_string()).unwrap();
            let _ = write!(client, "{count}");
        }
    }
}

fn ask(addr: SocketAddr, patience: Duration) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(b"?")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[tokio::test]
async fn a_server_keeps_its_port_and_directory_over_a_crash_and_a_restart() {
    let mut server = Server::start(counter(Ready::Port)).await.unwrap();
    let addr = server.addr();
    assert_eq!(ask(addr, WITHIN).unwrap(), "1");
    server.kill().await;
    assert!(ask(addr, WITHIN).is_err());
    server.restart().await.unwrap();
    assert_eq!((server.addr(), ask(addr, WITHIN).unwrap()), (addr, "2".to_owned()));
    server.stop().await;
    assert!(ask(addr, WITHIN).is_err());
    server.restart().await.unwrap();
    assert_eq!(ask(addr, WITHIN).unwrap(), "3");
}

#[tokio::test]
async fn a_frozen_server_keeps_its_connections_and_answers_after_it_thaws() {
    let server = Server::start(counter(Ready::Line("serving"))).await.unwrap();
    server.pause();
    let mut stream = TcpStream::connect(server.addr()).expect("the kernel still takes connections");
    stream.write_all(b"?").unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(stream.read(&mut [0]).is_err(), "nobody answers");
    server.resume();
    stream.set_read_timeout(Some(WITHIN)).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "1");
}

#[tokio::test]
async fn two_servers_share_nothing_and_leave_nothing() {
    let (one, two) = tokio::join!(Server::start(counter(Ready::Port)), Server::start(counter(Ready::Port)));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_ne!((one.addr(), one.dir()), (two.addr(), two.dir()));
    assert_eq!(ask(one.addr(), WITHIN).unwrap(), "1");
    assert_eq!(ask(two.addr(), WITHIN).unwrap(), "1");
    let (addr, dir) = (one.addr(), one.dir().to_owned());
    drop(one);
    assert!(TcpStream::connect(addr).is_err() && !dir.exists());
}

/// A port is lost between its choice and its use, as happens under load: everything begins anew with another one.
#[tokio::test]
async fn a_server_that_lost_its_port_gets_another_one_and_an_empty_directory() {
    let stolen: Arc<Mutex<Vec<TcpListener>>> = Arc::default();
    let (thefts, recipe) = (stolen.clone(), counter(Ready::Line("serving")));
    let args = recipe.args.clone();
    let robbed = Recipe {
        args: Arc::new(move |dir, port| {
            assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0, "what an attempt left names its port");
            std::fs::write(dir.join("settings"), port.to_string()).unwrap();
            let mut thefts = thefts.lock().unwrap();
            if thefts.len() < 2 {
                thefts.push(TcpListener::bind(("127.0.0.1", port)).unwrap());
            }
            args(dir, port)
        }),
        ..recipe
    };
    let server = Server::start(robbed).await.unwrap();
    assert_eq!(ask(server.addr(), WITHIN).unwrap(), "1");
    let settings = std::fs::read_to_string(server.dir().join("settings")).unwrap();
    assert_eq!(settings, server.addr().port().to_string());
    assert_eq!(stolen.lock().unwrap().len(), 2);
}

/// It comes back on its own port, for its clients know that one.
#[tokio::test]
async fn a_port_that_somebody_has_for_a_moment_is_waited_for() {
    let mut server = Server::start(counter(Ready::Line("serving"))).await.unwrap();
    let addr = server.addr();
    server.kill().await;
    let thief = TcpListener::bind(addr).unwrap();
    let back = server.restart();
    let leaving = tokio::task::spawn_blocking(move || {
        std::thread::sleep(Duration::from_millis(50));
        drop(thief);
    });
    let (back, leaving) = tokio::join!(back, leaving);
    leaving.unwrap();
    back.unwrap();
    assert_eq!(ask(addr, WITHIN).unwrap(), "1");
}

#[tokio::test]
async fn a_server_that_is_not_there_says_why() {
    let missing = Recipe { program: "leasehold-no-such-server".into(), ..counter(Ready::Port) };
    assert!(matches!(Server::start(missing).await, Err(StartError::NotInstalled(_))));

    let sh = |script: fn(&Path, u16) -> Vec<OsString>, within| Recipe {
        program: "/bin/sh".into(),
        args: Arc::new(script),
        within,
        ..counter(Ready::Line("never printed"))
    };
    let ends = sh(|_, _| vec!["-c".into(), "echo no room >&2; exit 1".into()], WITHIN);
    match Server::start(ends).await {
        Err(StartError::Ended { output, .. }) => assert_eq!(output, "no room"),
        other => panic!("{other:?}"),
    }
    let sleeps =
        sh(|_, _| vec!["-c".into(), "echo still thinking; sleep 1000".into()], Duration::from_secs(2));
    match Server::start(sleeps).await {
        Err(StartError::NotReady { output, .. }) => assert_eq!(output, "still thinking"),
        other => panic!("{other:?}"),
    }
}
