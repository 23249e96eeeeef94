//! The methods of a peer or a backend that hand on to the one inside it.

/// Makes these methods of [`Peer`](pummel_engine::backend::sim::Peer) or [`Backend`](pummel_engine::backend::Backend) hand on to the
/// field `inner`.
macro_rules! forward {
    ($inner:ident: $($method:ident),+) => {
        $(forward!(@ $inner $method);)+
    };
    (@ $inner:ident handle_connect) => {
        fn handle_connect(
            &mut self,
            conn: pummel_engine::backend::ConnId,
            target: &pummel_engine::backend::Target,
            now: pummel_logic::time::Nanos,
        ) -> pummel_engine::backend::sim::Admission {
            self.$inner.handle_connect(conn, target, now)
        }
    };
    (@ $inner:ident handle_received) => {
        fn handle_received(
            &mut self,
            conn: pummel_engine::backend::ConnId,
            bytes: &[u8],
            now: pummel_logic::time::Nanos,
        ) {
            self.$inner.handle_received(conn, bytes, now);
        }
    };
    (@ $inner:ident handle_closed) => {
        fn handle_closed(&mut self, conn: pummel_engine::backend::ConnId, now: pummel_logic::time::Nanos) {
            self.$inner.handle_closed(conn, now);
        }
    };
    (@ $inner:ident now) => {
        fn now(&self) -> pummel_logic::time::Nanos {
            self.$inner.now()
        }
    };
    (@ $inner:ident open) => {
        fn open(&mut self, conn: pummel_engine::backend::ConnId, target: &pummel_engine::backend::Target) {
            self.$inner.open(conn, target);
        }
    };
    (@ $inner:ident send) => {
        fn send(
            &mut self,
            conn: pummel_engine::backend::ConnId,
            parts: &[std::io::IoSlice<'_>],
        ) -> pummel_engine::backend::Handed {
            self.$inner.send(conn, parts)
        }
    };
    (@ $inner:ident close) => {
        fn close(&mut self, conn: pummel_engine::backend::ConnId, how: pummel_engine::backend::Close) {
            self.$inner.close(conn, how);
        }
    };
    (@ $inner:ident drain) => {
        fn drain(
            &mut self,
            on: &mut impl FnMut(pummel_engine::backend::ConnId, pummel_engine::backend::Event<'_>),
        ) {
            self.$inner.drain(on);
        }
    };
}
