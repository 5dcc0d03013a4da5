package onggi;

import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;

/** The client's certificate and its CA, from PEM files. */
final class Certificates {
    private Certificates() {}

    /** Sockets that trust the directory's CA alone and show the client's certificate. */
    static SSLSocketFactory sockets(Path directory) {
        try {
            var trusted = empty();
            trusted.setCertificateEntry("ca", certificate(directory.resolve("ca.pem")));
            var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(trusted);
            String pem = Files.readString(directory.resolve("client.key"));
            byte[] key = Base64.getMimeDecoder().decode(pem.replaceAll("-----[A-Z ]+-----", ""));
            var own = empty();
            Certificate[] chain = {certificate(directory.resolve("client.pem"))};
            var secret = KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(key));
            own.setKeyEntry("client", secret, new char[0], chain);
            var keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            keys.init(own, new char[0]);
            var context = SSLContext.getInstance("TLS");
            context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
            return context.getSocketFactory();
        } catch (Exception problem) {
            throw new IllegalStateException("cannot read the certificates of " + directory, problem);
        }
    }

    private static KeyStore empty() throws Exception {
        var store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }

    private static Certificate certificate(Path file) throws Exception {
        try (var input = Files.newInputStream(file)) {
            return CertificateFactory.getInstance("X.509").generateCertificate(input);
        }
    }
}
