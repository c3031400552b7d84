package secrets

import "fmt"

// Form is the first byte of a sealed value. It identifies the kind of source that sealed the value.
type Form byte

// The forms. Records contain them, so they never change.
const (
	FormFile   Form = 1 // Keyring
	FormVault  Form = 2 // keyservice.Vault
	FormAWS    Form = 3 // keyservice.Amazon
	FormGoogle Form = 4 // keyservice.Google
)

// String returns the kind of source that seals values of the form.
func (f Form) String() string {
	switch f {
	case FormFile:
		return "a key of a file"
	case FormVault:
		return "a key of a Vault"
	case FormAWS:
		return "a key of AWS KMS"
	case FormGoogle:
		return "a key of Google's Cloud KMS"
	}
	return fmt.Sprintf("form %d", byte(f))
}

// Wrap returns the sealed value with the form f as its first byte.
func (f Form) Wrap(sealed []byte) []byte { return append([]byte{byte(f)}, sealed...) }

// Unwrap removes the form that Wrap added. For a value of another form, it returns ErrNoKey, and
// names that form in the error. It returns ErrOpen for a value that was never sealed.
func (f Form) Unwrap(value []byte) ([]byte, error) {
	if len(value) == 0 || value[0] < byte(FormFile) || value[0] > byte(FormGoogle) {
		return nil, ErrOpen
	}
	if form := Form(value[0]); form != f {
		return nil, fmt.Errorf("%w: it was sealed with %s", ErrNoKey, form)
	}
	return value[1:], nil
}
