package registry

import "moorage"

// PropertiesBytesMax bounds the properties of a namespace or a warehouse: the total bytes of all
// names and values. It also bounds one change of properties. Engines store far less. The bound
// keeps it cheap to read such a record, or the outcome of such a change.
const PropertiesBytesMax = 1 << 20

// CheckProperties returns KindTooLarge if properties are longer than PropertiesBytesMax.
func CheckProperties(properties map[string]string) error {
	bytes := 0
	for name, value := range properties {
		bytes += len(name) + len(value)
	}
	if bytes <= PropertiesBytesMax {
		return nil
	}
	return moorage.Errorf(moorage.KindTooLarge,
		"The names and values of the properties have %d bytes together, at most %d are allowed",
		bytes, PropertiesBytesMax)
}
