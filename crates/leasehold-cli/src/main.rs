//! The program `leasehold`. Everything is in the library beside it, so that it can be read and documented as one.

fn main() -> std::process::ExitCode {
    leasehold_cli::main()
}
