// Function `parse_xml`.

import { parseXml } from '../../formats/xml.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'
import { flag } from '../parameters.ts'

export const parseXmlFunction = defineFunction({
  name: 'parse_xml',
  category: 'Parse',
  summary: 'Parses an XML document into objects.',
  description: 'Repeated elements become an array; an element with only text becomes that text.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The document.' },
    flag('trim', true, 'Whether to remove white space between elements.'),
    flag('include_attr', true, 'Read attributes.'),
    {
      name: 'attr_prefix',
      kind: kinds.string,
      required: false,
      default: '@',
      description: 'Prefix of attribute names.',
    },
    {
      name: 'text_key',
      kind: kinds.string,
      required: false,
      default: 'text',
      description: 'Name of the field for text next to attributes and elements.',
    },
    flag('always_use_text_key', false, 'Whether to use that name for text even if it stands alone.'),
    flag('parse_bool', true, 'Whether to convert `true` and `false` to booleans.'),
    flag('parse_null', true, 'Whether to convert `null` to null.'),
    flag('parse_number', true, 'Whether to convert numbers.'),
  ],
  returns: kinds.string.or(kinds.objectEach(kinds.object)),
  // The language declares every element as an object.
  nominal: true,
  fallible: 'always',
  errors: ['The document is not well-formed.'],
  pure: true,
  examples: [
    {
      source: 'parse_xml!("<a><b>1</b><b x=\\"y\\">2</b></a>")',
      result: '{ "a": { "b": [1, { "@x": "y", "text": 2 }] } }',
    },
    { source: 'parse_xml!("<a>true</a>")', result: '{ "a": true }' },
    { source: 'parse_xml!("<a>1</a>", parse_number: false)', result: '{ "a": "1" }' },
  ],
  compile:
    () =>
    (
      text: string,
      trim: boolean,
      includeAttributes: boolean,
      attributePrefix: string,
      textKey: string,
      alwaysUseTextKey: boolean,
      parseBoolean: boolean,
      parseNull: boolean,
      parseNumber: boolean,
    ) =>
      parseXml(text, {
        trim,
        includeAttributes,
        attributePrefix,
        textKey,
        alwaysUseTextKey,
        parseBoolean,
        parseNull,
        parseNumber,
      }) ?? failure('unable to parse xml: the document is not well-formed'),
})
