package s3_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"moorage/storage"
	"moorage/storage/s3"
	"moorage/testkit/fakecloud"
	"moorage/testkit/storagetest"
)

func TestVending(t *testing.T) {
	t.Parallel()
	storagetest.RunVending(t, func(t *testing.T) storagetest.Vending {
		server := fakecloud.StartMinIO(t)
		root := "s3://" + server.NewBucket(t) + "/wh"
		return storagetest.Vending{
			Store: open(t, vendOptions(server.Endpoint), root), Root: root,
			Engine: func(_ *testing.T, made storage.Credential) storagetest.Engine {
				return newEngine(server.Endpoint, made)
			},
			Refuses: refusedElsewhere,
			// MinIO cleans such keys, or refuses them.
			Impossible:       func(name string) bool { return strings.Contains(name, "//") || strings.Contains(name, `\`) },
			ProtectsMetadata: true,
		}
	})
}

// TestProbeVendingFindsSeaweedFS: that server ignores case when it compares the resources of a
// policy, so it must not vend.
func TestProbeVendingFindsSeaweedFS(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartS3(t)
	bucket := server.NewBucket(t)
	store := open(t, vendOptions(server.Endpoint), "s3://"+bucket+"/wh")
	err := store.ProbeVending(t.Context())
	if !errors.Is(err, storage.ErrUnenforced) || !strings.Contains(err.Error(), "only in case") {
		t.Errorf("ProbeVending = %v; want ErrUnenforced because of the case of names", err)
	}
	if keys := server.Keys(t, bucket); len(keys) > 0 {
		t.Errorf("the probe left %q", keys)
	}
}

// TestProbeVendingFindsLooseServers probes servers that do not enforce the given policy exactly.
// The probe must detect each of them.
func TestProbeVendingFindsLooseServers(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartMinIO(t)
	for _, tt := range []struct {
		name   string
		loosen func(policy string) string
		finds  string
	}{
		{"ignores the policy", func(string) string { return "" }, "can read in"},
		{"forgets the slash", func(p string) string {
			return regexp.MustCompile(`(moorage-probe-[0-9a-f]*)/\*`).ReplaceAllString(p, `$1*`)
		}, "whose name begins with"},
		{"lists all", func(p string) string {
			return regexp.MustCompile(`,"Condition":{[^}]*}}`).ReplaceAllString(p, "")
		}, "can list"},
		{"lists without the slash", func(p string) string {
			return regexp.MustCompile(`("s3:prefix":"[^"]*)/\*"`).ReplaceAllString(p, `$1*"`)
		}, "can list"},
		{"knows no Deny", func(p string) string {
			return regexp.MustCompile(`,{"Effect":"Deny"[^}]*}`).ReplaceAllString(p, "")
		}, "metadata"},
		{"lets readers write", func(p string) string {
			return strings.Replace(p, `"Action":"s3:GetObject"`, `"Action":["s3:GetObject","s3:PutObject"]`, 1)
		}, "read-only"},
		{"lets readers delete", func(p string) string {
			return strings.Replace(p, `"Action":"s3:GetObject"`, `"Action":["s3:GetObject","s3:DeleteObject"]`, 1)
		}, "read-only"},
		{"cleans names", func(p string) string {
			return regexp.MustCompile(`,{"Effect":"Deny","Action":"s3:\*"[^}]*}`).ReplaceAllString(p, "")
		}, "/../"},
		{"is deaf to case", func(p string) string {
			found := regexp.MustCompile(`arn:aws:s3:::([^/]*/wh/)(moorage-probe-[0-9a-f]*)`).FindStringSubmatch(p)
			all := `"arn:aws:s3:::` + found[1] + found[2] + `/*"`
			return strings.Replace(p, all, `[`+all+`,"arn:aws:s3:::`+found[1]+strings.ToUpper(found[2])+`/*"]`, 1)
		}, "only in case"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bucket := server.NewBucket(t)
			with := vendOptions(server.Endpoint)
			with.Vending.Endpoint = looseSTS(t, server, tt.loosen)
			store := open(t, with, "s3://"+bucket+"/wh")
			err := store.ProbeVending(t.Context())
			if !errors.Is(err, storage.ErrUnenforced) || !strings.Contains(err.Error(), tt.finds) {
				t.Errorf("ProbeVending = %v; want ErrUnenforced with %q", err, tt.finds)
			}
			if keys := server.Keys(t, bucket); len(keys) > 0 {
				t.Errorf("the probe left %q", keys)
			}
		})
	}
}

// looseSTS returns the URL of a server that requests credentials with a different policy from the
// real server.
func looseSTS(t *testing.T, server *fakecloud.S3Server, loosen func(policy string) string) string {
	t.Helper()
	real := sts.New(sts.Options{
		Region: fakecloud.S3Region, BaseEndpoint: aws.String(server.Endpoint),
		Credentials: credentials.NewStaticCredentialsProvider(fakecloud.S3AccessKeyID, fakecloud.S3SecretAccessKey, ""),
	})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		input := &sts.AssumeRoleInput{
			RoleArn: aws.String(r.FormValue("RoleArn")), RoleSessionName: aws.String(r.FormValue("RoleSessionName")),
		}
		if policy := loosen(r.FormValue("Policy")); policy != "" {
			input.Policy = &policy
		}
		answer, err := real.AssumeRole(r.Context(), input)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		made := answer.Credentials
		w.Header().Set("Content-Type", "text/xml")
		_, _ = fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>`+
			`<Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>%s</SessionToken>`+
			`<Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`, *made.AccessKeyId,
			*made.SecretAccessKey, *made.SessionToken, made.Expiration.Format(time.RFC3339))
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// vendOptions returns options with a role.
func vendOptions(endpoint string) s3.Options {
	with := options(endpoint)
	with.Vending = s3.Vending{RoleARN: fakecloud.S3RoleARN}
	return with
}

// refusedElsewhere reports whether no policies, or only Amazon's, can express a name.
func refusedElsewhere(name string) bool {
	isForeign := func(c rune) bool { return c > 'ÿ' }
	return strings.ContainsAny(name, "*$?") || strings.Contains(name, "//") || strings.ContainsFunc(name, isForeign)
}

// engine is a client with a credential.
type engine struct{ client *sdk.Client }

func newEngine(endpoint string, made storage.Credential) engine {
	return engine{sdk.New(sdk.Options{
		Region: fakecloud.S3Region, BaseEndpoint: aws.String(endpoint), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(made.Config["s3.access-key-id"],
			made.Config["s3.secret-access-key"], made.Config["s3.session-token"]),
	})}
}

// parts returns bucket and key of a location, byte for byte.
func parts(location string) (bucket, key *string) {
	before, after, _ := strings.Cut(strings.TrimPrefix(location, "s3://"), "/")
	return &before, &after
}

func (e engine) Read(ctx context.Context, location string) error {
	bucket, key := parts(location)
	answer, err := e.client.GetObject(ctx, &sdk.GetObjectInput{Bucket: bucket, Key: key})
	if err != nil {
		return denied(err)
	}
	return answer.Body.Close()
}

func (e engine) Write(ctx context.Context, location string) error {
	bucket, key := parts(location)
	_, err := e.client.PutObject(ctx, &sdk.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader("mine")})
	return denied(err)
}

func (e engine) List(ctx context.Context, prefix string) error {
	bucket, key := parts(prefix)
	_, err := e.client.ListObjectsV2(ctx, &sdk.ListObjectsV2Input{Bucket: bucket, Prefix: key})
	return denied(err)
}

func (e engine) Delete(ctx context.Context, location string) error {
	bucket, key := parts(location)
	answer, err := e.client.DeleteObjects(ctx, &sdk.DeleteObjectsInput{
		Bucket: bucket, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: key}}},
	})
	if err != nil {
		return denied(err)
	}
	if len(answer.Errors) == 0 {
		return nil
	}
	failed := answer.Errors[0]
	if aws.ToString(failed.Code) == "AccessDenied" {
		return storagetest.ErrDenied
	}
	return fmt.Errorf("%s: %s", aws.ToString(failed.Code), aws.ToString(failed.Message))
}

// denied converts a server's refusal to ErrDenied.
func denied(err error) error {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.HTTPStatusCode() == http.StatusForbidden {
		return fmt.Errorf("%w: %w", storagetest.ErrDenied, err)
	}
	return err
}
