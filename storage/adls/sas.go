package adls

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The permissions of a signature, in the order that Azure requires: read, add, create, write,
// delete and list.
const (
	permissionsRead  = "rl"
	permissionsWrite = "racwdl"
)

const (
	// sasTime is the layout of times in a signature.
	sasTime = "2006-01-02T15:04:05Z"
	// sasDirectory marks a signature for the blobs at and below a directory.
	sasDirectory = "d"
	// sasHTTPS marks a signature that is valid only over HTTPS.
	sasHTTPS = "https"
)

// delegationKey is a user delegation key. Azure issues it to an identity, which can sign with it.
// It is a secret.
type delegationKey struct {
	ObjectID string    `xml:"SignedOid"`
	TenantID string    `xml:"SignedTid"`
	Start    time.Time `xml:"SignedStart"`
	Expiry   time.Time `xml:"SignedExpiry"`
	Service  string    `xml:"SignedService"`
	Version  string    `xml:"SignedVersion"`
	Value    string    `xml:"Value"` // base64
}

// grant is the access that a signature allows.
type grant struct {
	account, container string
	directory          string // segments separated by slashes, at least one
	permissions        string
	expiry             time.Time
}

// sign returns a shared access signature: the query of a URL, without the question mark.
//
// Source: REST API of Azure Storage, "Create a user delegation SAS", for the versions from
// 2020-12-06 to before 2025-07-05.
func (g grant) sign(key delegationKey) (string, error) {
	secret, err := base64.StdEncoding.DecodeString(key.Value)
	if err != nil || len(secret) == 0 {
		return "", fmt.Errorf("adls: Azure's user delegation key cannot be read")
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(g.stringToSign(key)))
	query := url.Values{
		"sv":  {serviceVersion},
		"sr":  {sasDirectory},
		"sdd": {strconv.Itoa(g.depth())},
		"sp":  {g.permissions},
		"se":  {g.expiry.UTC().Format(sasTime)},
		"spr": {sasHTTPS},

		"skoid": {key.ObjectID},
		"sktid": {key.TenantID},
		"skt":   {key.Start.UTC().Format(sasTime)},
		"ske":   {key.Expiry.UTC().Format(sasTime)},
		"sks":   {key.Service},
		"skv":   {key.Version},

		"sig": {base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}
	return query.Encode(), nil
}

// depth returns the number of segments of a request's path that Azure compares with the directory.
func (g grant) depth() int { return strings.Count(g.directory, "/") + 1 }

// stringToSign returns the text to sign. Its empty fields are restrictions that this package does
// not use.
func (g grant) stringToSign(key delegationKey) string {
	return strings.Join([]string{
		g.permissions,
		"", // start of validity: at once
		g.expiry.UTC().Format(sasTime),
		"/blob/" + g.account + "/" + g.container + "/" + g.directory,
		key.ObjectID,
		key.TenantID,
		key.Start.UTC().Format(sasTime),
		key.Expiry.UTC().Format(sasTime),
		key.Service,
		key.Version,
		"", // authorized user, whose permissions Azure does not check
		"", // authorized user, whose permissions Azure checks
		"", // id of the signature's user in Azure's logs
		"", // allowed addresses
		sasHTTPS,
		serviceVersion,
		sasDirectory,
		"", // snapshot time
		"", // encryption scope
		"", // five headers that Azure would set in answers
		"",
		"",
		"",
		"",
	}, "\n")
}
