package fakecloud

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The identity that tests use.
const (
	objectID = "6fd63d7e-0000-4000-8000-000000000001"
	tenantID = "6fd63d7e-0000-4000-8000-000000000002"
)

// signatureParameters returns the names of the query parameters that belong to a signature.
func signatureParameters() []string {
	return []string{"sv", "sr", "sdd", "sp", "st", "se", "spr", "skoid", "sktid", "skt", "ske", "sks", "skv", "sig"}
}

// delegationKey returns the user delegation key of the identity for a period. The key is computed
// from the period, so it need not be stored.
func delegationKey(start, expiry string) string {
	mac := hmac.New(sha256.New, []byte("what only the account knows"))
	mac.Write([]byte(start + "\n" + expiry))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// isSigned reports whether the request has a signature for a directory that contains the request's
// path. The signature must use a key of the identity.
//
// Source: REST API of Azure Storage, "Create a user delegation SAS". The code follows that
// document, and uses no part of the code under test.
func (c call) isSigned() bool {
	depth, err := strconv.Atoi(c.query.Get("sdd"))
	directory, found := cutDirectory(c.named(), depth)
	expiry, otherErr := time.Parse(time.RFC3339, c.query.Get("se"))
	keyExpiry, keyErr := time.Parse(time.RFC3339, c.query.Get("ske"))
	now := time.Now()
	if err != nil || otherErr != nil || keyErr != nil || !found || c.query.Get("sr") != "d" ||
		!now.Before(expiry) || !now.Before(keyExpiry) || c.query.Get("spr") == "https" && c.TLS == nil {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(delegationKey(c.query.Get("skt"), c.query.Get("ske")))
	if err != nil {
		return false
	}
	var text strings.Builder
	for _, field := range []string{
		c.query.Get("sp"), c.query.Get("st"), c.query.Get("se"),
		"/blob/" + AzureAccount + "/" + c.container + "/" + directory,
		c.query.Get("skoid"), c.query.Get("sktid"), c.query.Get("skt"), c.query.Get("ske"), c.query.Get("sks"),
		c.query.Get("skv"), c.query.Get("saoid"), c.query.Get("suoid"), c.query.Get("scid"), c.query.Get("sip"),
		c.query.Get("spr"), c.query.Get("sv"), "d", "", c.query.Get("ses"),
		c.query.Get("rscc"), c.query.Get("rscd"), c.query.Get("rsce"), c.query.Get("rscl"),
	} {
		text.WriteString(field + "\n")
	}
	text.WriteString(c.query.Get("rsct"))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text.String()))
	given, err := base64.StdEncoding.DecodeString(c.query.Get("sig"))
	return err == nil && hmac.Equal(mac.Sum(nil), given)
}

// named returns the path in the request: the blob, or the prefix of a listing.
func (c call) named() string {
	if c.blob == "" && c.query.Get("comp") == "list" {
		// Without a slash at its end, the prefix would also match siblings of the directory.
		prefix := c.query.Get("prefix")
		return prefix[:max(0, strings.LastIndexByte(prefix, '/'))]
	}
	return c.blob
}

// cutDirectory returns the first depth segments of a path, or false if it has fewer.
func cutDirectory(path string, depth int) (string, bool) {
	segments := strings.Split(path, "/")
	if path == "" || depth < 1 || len(segments) < depth {
		return "", false
	}
	return strings.Join(segments[:depth], "/"), true
}

// isAllowed reports whether the permissions of a signature allow the request.
func (c call) isAllowed(lake *Lake) bool {
	allows := func(permission string) bool { return strings.Contains(c.query.Get("sp"), permission) }
	switch {
	case c.Header.Get("X-Ms-Copy-Source") != "":
		return false
	case c.blob == "":
		return c.Method == http.MethodGet && c.query.Get("restype") == "container" && c.query.Get("comp") == "list" &&
			allows("l")
	case c.Method == http.MethodGet, c.Method == http.MethodHead:
		return allows("r")
	case c.Method == http.MethodDelete:
		return allows("d")
	case c.Method == http.MethodPut && allows("w"):
		return true
	case c.Method == http.MethodPut && allows("c"):
		there, err := lake.Behind.names(c.Context(), c.container, c.blob)
		return err == nil && (len(there) == 0 || there[0] != c.blob)
	}
	return false
}
