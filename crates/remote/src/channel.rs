//! Connections to the service: addresses, TLS, headers, one call.

use std::path::PathBuf;
use std::time::Duration;

use http::uri::PathAndQuery;
use prost::Message;
use tokio_stream::Stream;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataKey, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

/// Limit of a call that is no execution.
const CALL: Duration = Duration::from_secs(60);
/// Interval at which the kernel asks whether an idle peer still lives.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Largest message that is accepted.
const MESSAGE: usize = 64 << 20;

/// An address: `grpc://HOST[:PORT][/INSTANCE]`, or `grpcs` for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    is_secure: bool,
    authority: String,
    /// The service's instance. Empty if the address has none.
    pub instance: String,
}

impl Endpoint {
    /// Reads an address. The error says what is wrong.
    pub fn parse(text: &str) -> Result<Endpoint, String> {
        let (is_secure, rest) = match text.split_once("://") {
            Some(("grpc", rest)) => (false, rest),
            Some(("grpcs", rest)) => (true, rest),
            _ => return Err(format!("'{text}' is no address; write grpc://HOST:PORT/INSTANCE or grpcs://…")),
        };
        let (host, instance) = rest.split_once('/').unwrap_or((rest, ""));
        let without_port = host.is_empty() || host.ends_with(']') || !host.contains(':');
        let port = if is_secure { 443 } else { 80 };
        let authority = if without_port { format!("{host}:{port}") } else { host.to_owned() };
        let is_valid = !host.is_empty() && authority.parse::<http::uri::Authority>().is_ok();
        if !is_valid {
            return Err(format!("'{text}' names no host; write grpc://HOST:PORT/INSTANCE"));
        }
        Ok(Endpoint { is_secure, authority, instance: instance.trim_end_matches('/').to_owned() })
    }
}

/// Files for TLS. Without them, the system's certificates are trusted and the client has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificates that sign the server's.
    pub authorities: Option<PathBuf>,
    /// The client's certificate and key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// A header of each call.
pub(crate) type Header = (MetadataKey<Ascii>, MetadataValue<Ascii>);

/// Reads headers.
pub(crate) fn headers(texts: &[(String, String)]) -> Result<Vec<Header>, String> {
    let read = |(name, value): &(String, String)| {
        let told = || format!("'{name}: {value}' is no header");
        let name = MetadataKey::from_bytes(name.to_lowercase().as_bytes()).map_err(|_| told())?;
        Ok((name, MetadataValue::try_from(value.as_str()).map_err(|_| told())?))
    };
    texts.iter().map(read).collect()
}

/// A connection, which is made when it is first used and renewed when it is lost.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    channel: Channel,
    headers: Vec<Header>,
    pub instance: String,
}

impl Connection {
    /// Must be called within the runtime.
    pub fn new(endpoint: &Endpoint, tls: &Tls, headers: Vec<Header>) -> Result<Connection, String> {
        let scheme = if endpoint.is_secure { "https" } else { "http" };
        let address = format!("{scheme}://{}", endpoint.authority);
        let mut builder = Channel::from_shared(address.clone())
            .map_err(|error| format!("{address}: {error}"))?
            .connect_timeout(KEEP_ALIVE)
            .tcp_keepalive(Some(KEEP_ALIVE))
            .user_agent(concat!("hotstart/", env!("CARGO_PKG_VERSION")))
            .map_err(|error| error.to_string())?;
        if endpoint.is_secure {
            builder = builder.tls_config(config(tls)?).map_err(|error| format!("{address}: {error}"))?;
        }
        Ok(Connection { channel: builder.connect_lazy(), headers, instance: endpoint.instance.clone() })
    }

    /// Makes a call with one message each way.
    pub async fn unary<Q, A>(&self, method: &'static str, message: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let call = async {
            let mut grpc = self.ready().await?;
            let (path, codec) = (PathAndQuery::from_static(method), ProstCodec::<Q, A>::default());
            grpc.unary(self.request(message), path, codec).await
        };
        Ok(limited(CALL, call).await?.into_inner())
    }

    /// Makes a call that is answered by a stream.
    pub async fn server_streaming<Q, A>(
        &self,
        method: &'static str,
        message: Q,
    ) -> Result<Streaming<A>, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = self.ready().await?;
        let (path, codec) = (PathAndQuery::from_static(method), ProstCodec::<Q, A>::default());
        Ok(grpc.server_streaming(self.request(message), path, codec).await?.into_inner())
    }

    /// Makes a call that sends a stream.
    pub async fn client_streaming<Q, A>(
        &self,
        method: &'static str,
        messages: impl Stream<Item = Q> + Send + 'static,
    ) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = self.ready().await?;
        let (path, codec) = (PathAndQuery::from_static(method), ProstCodec::<Q, A>::default());
        Ok(grpc.client_streaming(self.request(messages), path, codec).await?.into_inner())
    }

    async fn ready(&self) -> Result<Grpc<Channel>, Status> {
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(MESSAGE);
        grpc.ready().await.map_err(|error| Status::unavailable(chain(&error)))?;
        Ok(grpc)
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        for (name, value) in &self.headers {
            request.metadata_mut().insert(name.clone(), value.clone());
        }
        request
    }
}

/// Waits for a call, but not longer than `limit`.
pub(crate) async fn limited<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    match tokio::time::timeout(limit, call).await {
        Ok(answer) => answer,
        Err(_) => Err(Status::deadline_exceeded(format!("no answer within {} s", limit.as_secs()))),
    }
}

/// Returns the text of an error with those that caused it: the first alone says only that a connection failed.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn config(tls: &Tls) -> Result<ClientTlsConfig, String> {
    let read = |path: &PathBuf| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let mut config = match &tls.authorities {
        Some(path) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(path)?)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    if let Some((certificate, key)) = &tls.identity {
        config = config.identity(Identity::from_pem(read(certificate)?, read(key)?));
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let parsed = |text| Endpoint::parse(text).map(|at| (at.is_secure, at.authority, at.instance));
        let at = |secure, authority: &str, instance: &str| Ok((secure, authority.into(), instance.into()));
        assert_eq!(parsed("grpc://h:50051/a/b"), at(false, "h:50051", "a/b"));
        assert_eq!(parsed("grpcs://h"), at(true, "h:443", ""));
        assert_eq!(parsed("grpc://[::1]/x/"), at(false, "[::1]:80", "x"));
        for wrong in ["h:1", "http://h", "grpc://", "grpc://h h:1", "grpc:///x"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn headers_have_names_and_values() {
        let read = |name: &str, value: &str| headers(&[(name.to_owned(), value.to_owned())]).is_ok();
        assert!(read("Authorization", "Bearer x") && !read("a b", "x") && !read("a", "x\ny"));
    }
}
