package identity

import (
	"crypto/x509"

	"moorage"
)

// callerOfCertificate returns the caller of a certificate that the TLS layer has verified. The
// caller's name is the first SPIFFE id in the certificate. Without such an id, it is the common
// name of the subject.
func callerOfCertificate(certificate *x509.Certificate) (moorage.Caller, error) {
	subject := certificate.Subject.CommonName
	for _, uri := range certificate.URIs {
		if uri.Scheme == "spiffe" {
			subject = uri.String()
			break
		}
	}
	name, ok := nameOf(aliasCertificate, subject)
	if !ok {
		return moorage.Caller{}, refuse(reasonCertificate)
	}
	return moorage.Caller{Name: name, Source: moorage.SourceCertificate, Ends: certificate.NotAfter}, nil
}
