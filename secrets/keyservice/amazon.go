package keyservice

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"

	"moorage/secrets"
)

// SchemeAmazon is the scheme of the address of a key.
const SchemeAmazon = "aws-kms"

const (
	// plainBytesMax is the maximum length of a secret that the service encrypts. Source: AWS KMS
	// API, Encrypt.
	plainBytesMax = 4096
	// contextName is the name of the owner in an encryption context. Key policies can require this
	// name.
	contextName = "moorage"
	// target is the prefix of the names of actions in requests.
	target = "TrentService."
	// service is AWS KMS's name in signatures.
	service = "kms"
)

// amazonKeyPattern matches the Amazon resource name of a key: partition, region, id. An alias is
// not allowed, because it can later point to another key, which could not open older values.
var amazonKeyPattern = regexp.MustCompile(
	`^arn:(aws[a-z-]{0,20}):kms:([a-z0-9-]{1,32}):[0-9]{12}:key/([A-Za-z0-9-]{1,128})$`)

// AmazonConfig holds the addresses of the key and of the service.
type AmazonConfig struct {
	// Address is aws-kms:// and the resource name of the key, arn:aws:kms:REGION:ACCOUNT:key/ID.
	Address string
	// Endpoint is the URL of the service. Default: Amazon's for the region of the key.
	Endpoint string
}

// Amazon is a secrets.Source. It is safe for concurrent use.
type Amazon struct {
	key, id, region string // key is the resource name, which ends in id
	endpoint        string
	credentials     aws.CredentialsProvider
	signer          *v4.Signer
	service         *Client
	now             func() time.Time
}

// NewAmazon returns a source that seals with the key in c. It reads the environment and the shared
// configuration files of the AWS SDKs. It sends no request, so a server starts even if the service
// is unreachable.
func NewAmazon(c AmazonConfig) (*Amazon, error) {
	key, ours := strings.CutPrefix(c.Address, SchemeAmazon+"://")
	parts := amazonKeyPattern.FindStringSubmatch(key)
	if !ours || parts == nil {
		return nil, fmt.Errorf("awskms: %q is not the address of a key, such as "+
			"aws-kms://arn:aws:kms:REGION:ACCOUNT:key/ID; an alias is none", c.Address)
	}
	partition, region, id := parts[1], parts[2], parts[3]
	endpoint, err := endpointOf(c.Endpoint, partition, region)
	if err != nil {
		return nil, err
	}
	loaded, err := config.LoadDefaultConfig(context.Background(), config.WithRegion(region))
	if err != nil {
		return nil, fmt.Errorf("awskms: read the configuration: %w", err)
	}
	return &Amazon{
		key: key, id: id, region: region, endpoint: endpoint, credentials: loaded.Credentials,
		signer: v4.NewSigner(), service: NewClient(nil), now: time.Now,
	}, nil
}

// endpointOf returns the URL of the service, which ends in a slash. It is setting, or Amazon's URL
// if setting is empty.
func endpointOf(setting, partition, region string) (string, error) {
	switch {
	case setting != "":
		if err := CheckEndpoint(setting); err != nil {
			return "", fmt.Errorf("awskms: %w", err)
		}
		return strings.TrimSuffix(setting, "/") + "/", nil
	case partition == "aws" || partition == "aws-us-gov":
		return "https://kms." + region + ".amazonaws.com/", nil
	case partition == "aws-cn":
		return "https://kms." + region + ".amazonaws.com.cn/", nil
	}
	return "", fmt.Errorf("awskms: the address of the service in the partition %s is unknown: "+
		"add its address to that of the key, as ?endpoint=URL", partition)
}

// Seal encrypts plain for owner.
func (s *Amazon) Seal(plain []byte, owner secrets.Owner) ([]byte, error) {
	if err := secrets.CheckLength(plain, plainBytesMax); err != nil {
		return nil, err
	}
	bound, err := owner.Bound()
	if err != nil {
		return nil, err
	}
	var answer struct {
		CiphertextBlob []byte
		KeyID          string `json:"KeyId"`
	}
	err = s.call(context.Background(), "Encrypt", cryption{
		KeyID: s.key, Plaintext: plain, EncryptionContext: map[string]string{contextName: string(bound)},
	}, &answer)
	if err == nil && (answer.KeyID != s.key || len(answer.CiphertextBlob) == 0) {
		err = ErrAnswer
	}
	if err != nil {
		return nil, fmt.Errorf("awskms: seal: %w", err)
	}
	return secrets.FormAWS.Wrap(answer.CiphertextBlob), nil
}

// Open decrypts a value that was sealed for owner.
func (s *Amazon) Open(sealed []byte, owner secrets.Owner) ([]byte, error) {
	plain, _, err := s.open(sealed, owner)
	return plain, err
}

// Rewrap opens a value and, if it was sealed with older key material, seals it again. If the
// service does not report the material, as for keys in an external store, the value stays
// unchanged.
func (s *Amazon) Rewrap(sealed []byte, owner secrets.Owner) ([]byte, bool, error) {
	plain, material, err := s.open(sealed, owner)
	if err != nil {
		return nil, false, err
	}
	present, err := s.material(context.Background())
	if err != nil {
		return nil, false, err
	}
	if material == present {
		return sealed, false, nil
	}
	again, err := s.Seal(plain, owner)
	return again, err == nil, err
}

// Turn returns an error, because AWS rotates the key.
func (s *Amazon) Turn(context.Context) (now, before string, err error) {
	return "", "", fmt.Errorf("awskms: AWS rotates this key, by itself or with "+
		"aws kms rotate-key-on-demand --region %s --key-id %s. Then seal again with "+
		"moorage secrets rotate --keep-key", s.region, s.id)
}

// Present returns the name of the present key and the id of its material.
func (s *Amazon) Present(ctx context.Context) (string, error) {
	material, err := s.material(ctx)
	if err != nil || material == "" {
		return s.id, err
	}
	return s.id + " material " + material, nil
}

// cryption is the request body of Encrypt and of Decrypt.
type cryption struct {
	KeyID             string `json:"KeyId"`
	Plaintext         []byte `json:",omitempty"`
	CiphertextBlob    []byte `json:",omitempty"`
	EncryptionContext map[string]string
}

// open returns the plain value, and the id of the key material with which it was sealed. The id is
// empty if the service does not report it.
func (s *Amazon) open(sealed []byte, owner secrets.Owner) (plain []byte, material string, err error) {
	bound, err := owner.Bound()
	if err != nil {
		return nil, "", err
	}
	blob, err := secrets.FormAWS.Unwrap(sealed)
	if err == nil && len(blob) == 0 {
		err = secrets.ErrOpen
	}
	if err != nil {
		return nil, "", err
	}
	var answer struct {
		Plaintext []byte
		KeyID     string `json:"KeyId"`
		Material  string `json:"KeyMaterialId"`
	}
	// The request names the key, so a value sealed with another key of the AWS account does not
	// open.
	err = s.call(context.Background(), "Decrypt", cryption{
		KeyID: s.key, CiphertextBlob: blob, EncryptionContext: map[string]string{contextName: string(bound)},
	}, &answer)
	if err == nil && (answer.KeyID != s.key || len(answer.Plaintext) == 0) {
		err = ErrAnswer
	}
	if err != nil {
		return nil, "", fmt.Errorf("awskms: open: %w", err)
	}
	return answer.Plaintext, answer.Material, nil
}

// material returns the id of the key's current material. It is empty if the service does not report
// it.
func (s *Amazon) material(ctx context.Context) (string, error) {
	var answer struct {
		KeyMetadata struct {
			ARN      string `json:"Arn"`
			Material string `json:"CurrentKeyMaterialId"`
		}
	}
	asked := struct {
		KeyID string `json:"KeyId"`
	}{s.key}
	err := s.call(ctx, "DescribeKey", asked, &answer)
	if err == nil && answer.KeyMetadata.ARN != s.key {
		err = ErrAnswer
	}
	if err != nil {
		return "", fmt.Errorf("awskms: look at the key: %w", err)
	}
	return answer.KeyMetadata.Material, nil
}

// call requests an action. Errors: as for amazonRefusalOf, and secrets.ErrAway if the service does
// not answer or there are no credentials.
func (s *Amazon) call(ctx context.Context, action string, body, answer any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	said, err := s.service.Call(ctx, func(ctx context.Context) (*http.Request, error) {
		return s.request(ctx, action, content)
	}, mayPass)
	if err != nil {
		return err
	}
	if said.Status != http.StatusOK {
		return amazonRefusalOf(said)
	}
	return said.Decode(answer)
}

// request returns a signed request.
func (s *Amazon) request(ctx context.Context, action string, content []byte) (*http.Request, error) {
	credentials, err := s.credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("there are no credentials for AWS KMS: none come from the environment, the shared "+
			"files, a web identity, the container or the instance: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.1")
	request.Header.Set("X-Amz-Target", target+action)
	sum := sha256.Sum256(content)
	return request, s.signer.SignHTTP(ctx, credentials, request, hex.EncodeToString(sum[:]), service, s.region, s.now())
}

// amazonRefusal is an unsuccessful response from the service.
type amazonRefusal struct {
	status int
	kind   string // the name of the error, such as AccessDeniedException
	words  string // the message of the service
}

func (r *amazonRefusal) Error() string {
	return fmt.Sprintf("AWS KMS answered %d %s: %s", r.status, r.kind, r.words)
}

// newRefusal reads the error in a response.
func newRefusal(said Answer) *amazonRefusal {
	var document struct {
		Kind    string `json:"__type"`
		Message string // some responses spell it message
	}
	_ = said.Decode(&document) // the response may be a proxy's, without such a document
	kind := document.Kind[strings.LastIndex(document.Kind, "#")+1:]
	return &amazonRefusal{said.Status, Words(kind), Words(document.Message)}
}

// mayPass reports whether the failure is transient. The service reports throttling with the status
// 400.
func mayPass(said Answer) bool {
	return said.MayPass() || said.Status == http.StatusBadRequest && newRefusal(said).kind == "ThrottlingException"
}

// amazonRefusalOf returns the error for a response that is not a success. It is secrets.ErrOpen for
// a value that was changed or moved, secrets.ErrNoKey for a value of another key, and otherwise
// secrets.ErrAway. An administrator can correct the causes of ErrAway: permissions, a disabled key,
// a wrong clock, a limit.
func amazonRefusalOf(said Answer) error {
	refused := newRefusal(said)
	switch refused.kind {
	case "InvalidCiphertextException":
		return fmt.Errorf("%w: %w", secrets.ErrOpen, refused)
	case "IncorrectKeyException":
		return fmt.Errorf("%w: %w", secrets.ErrNoKey, refused)
	}
	return fmt.Errorf("%w: %w", secrets.ErrAway, refused)
}

var _ secrets.Source = (*Amazon)(nil)
