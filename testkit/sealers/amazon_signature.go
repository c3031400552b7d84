package sealers

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// signatureAlgorithm is the first word of a signed request's Authorization header.
	signatureAlgorithm = "AWS4-HMAC-SHA256"
	// signatureAgeMax is how far in the past or in the future the time of a signature may be.
	signatureAgeMax = 5 * time.Minute
)

// signer holds the credentials of a signer, and the scope of its signatures.
type signer struct{ id, secret, region, service string }

// verifySignature returns an error unless the given signer signed a request with these headers and
// this body. Source: AWS Identity and Access Management, "Create a signed AWS API request".
func verifySignature(r *http.Request, body []byte, by signer) error {
	parts := strings.Split(strings.ReplaceAll(r.Header.Get("Authorization"), ",", ""), " ")
	if len(parts) != 4 || parts[0] != signatureAlgorithm {
		return fmt.Errorf("the request is not signed: %q", r.Header.Get("Authorization"))
	}
	credential := strings.TrimPrefix(parts[1], "Credential=")
	names := strings.Split(strings.TrimPrefix(parts[2], "SignedHeaders="), ";")
	date := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", date)
	if err != nil || time.Since(at).Abs() > signatureAgeMax {
		return fmt.Errorf("the request is of %q", date)
	}
	scope := strings.Join([]string{date[:8], by.region, by.service, "aws4_request"}, "/")
	if credential != by.id+"/"+scope {
		return fmt.Errorf("the request is signed for %q, not for %q", credential, by.id+"/"+scope)
	}
	var headers strings.Builder
	for _, name := range names {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		headers.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	for _, needed := range []string{"content-type", "host", "x-amz-date", "x-amz-target"} {
		if !slices.Contains(names, needed) {
			return fmt.Errorf("the header %s is not signed", needed)
		}
	}
	canonical := strings.Join([]string{
		r.Method, r.URL.EscapedPath(), r.URL.RawQuery, headers.String(), strings.Join(names, ";"), hashOf(body),
	}, "\n")
	text := strings.Join([]string{signatureAlgorithm, date, scope, hashOf([]byte(canonical))}, "\n")
	key := []byte("AWS4" + by.secret)
	for _, part := range strings.Split(scope, "/") {
		key = mac(key, part)
	}
	if want := "Signature=" + hex.EncodeToString(mac(key, text)); parts[3] != want {
		return fmt.Errorf("the signature is %q, not %q", parts[3], want)
	}
	return nil
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func mac(key []byte, text string) []byte {
	made := hmac.New(sha256.New, key)
	made.Write([]byte(text))
	return made.Sum(nil)
}
