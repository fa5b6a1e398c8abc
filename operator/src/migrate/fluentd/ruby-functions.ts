// Functions of Ruby's modules, as remap expressions.

import { escapedText } from '../escape.ts'
import type { Emitter } from './ruby-emitter.ts'
import { asText, type Node, textNode, wholeNumber } from './ruby-node.ts'

type Make = (words: readonly Node[], emitter: Emitter) => Node | undefined

/** A function of one text. */
const ofText =
  (make: (text: string) => string): Make =>
  ([word, ...more], emitter) =>
    word === undefined || more.length > 0 ? undefined : textNode(make(emitter.textOf(word).text))

const parse: Make = ([word], emitter) =>
  word === undefined ? undefined : emitter.parsed(`parse_json(${emitter.textOf(word).text})`)

/** The record in Fluentd does not contain the time. */
export const jsonOf = (node: Node): Node =>
  textNode(
    node.text === '.' ? 'encode_json(filter(.) -> |key, _value| { key != "timestamp" })' : `encode_json(${node.text})`,
  )
const write: Make = ([word, ...more]) => (word === undefined || more.length > 0 ? undefined : jsonOf(word))

/** A number that makes up the whole text; an error for any other text. */
const number =
  (digits: string, call: 'to_int' | 'to_float', kind: 'integer' | 'float'): Make =>
  ([word, ...more], emitter) => {
    if (word === undefined || more.length > 0) return undefined
    if (word.kind === kind) return word
    const regex = `r'^\\s*(?P<number>[-+]?${digits})\\s*$'`
    const found = emitter.kept(`get(parse_regex(${asText(word)}, ${regex}) ?? {}, ["number"]) ?? null`, 'any')
    emitter.failIf(`${found.text} == null`)
    return { text: `(${call}(${found.text}) ?? ${kind === 'float' ? '0.0' : '0'})`, kind }
  }

/** The last name of a path, without an ending: a text, or `.*` for any one. */
const basename: Make = ([path, ending, ...more], emitter) => {
  if (path === undefined || more.length > 0) return undefined
  const name = `replace(replace(${emitter.textOf(path).text}, r'/+$', ""), r'^.*/', "")`
  if (ending === undefined) return textNode(name)
  const regex = ending.literal === '.*' ? '(.)\\.[^.]+$' : `(.)${escapedText(ending.literal ?? '')}$`
  return ending.literal === undefined ? undefined : textNode(`replace(${name}, r'${regex}', "$1")`)
}

export const functions: Readonly<Record<string, Make>> = {
  'File.basename': basename,
  'File.dirname': ofText((text) => `replace(${text}, r'/[^/]*$', "")`),
  'File.extname': ofText(
    (text) => `(to_string(get(parse_regex(${text}, r'[^/](?P<ending>\\.[^./]+)$') ?? {}, ["ending"]) ?? null) ?? "")`,
  ),
  'JSON.parse': parse,
  'JSON.load': parse,
  'Oj.load': parse,
  'Yajl.load': parse,
  'Yajl::Parser.parse': parse,
  'JSON.generate': write,
  'JSON.dump': write,
  'Oj.dump': write,
  'Yajl.dump': write,
  'Yajl::Encoder.encode': write,
  'Digest::MD5.hexdigest': ofText((text) => `md5(${text})`),
  'Digest::SHA1.hexdigest': ofText((text) => `sha1(${text})`),
  'Digest::SHA256.hexdigest': ofText((text) => `sha2(${text}, variant: "SHA-256")`),
  'Base64.strict_encode64': ofText((text) => `encode_base64(${text})`),
  'Base64.decode64': ofText((text) => `(decode_base64(${text}) ?? "")`),
  'Base64.strict_decode64': ([word], emitter) =>
    word === undefined ? undefined : emitter.parsed(`decode_base64(${emitter.textOf(word).text})`),
  'Base64.encode64': ofText((text) => `(encode_base64(${text}) + "\\n")`),
  'URI.decode_www_form_component': ofText((text) => `decode_percent(replace(${text}, "+", " "))`),
  'SecureRandom.hex': ([count]) => {
    const bytes = count === undefined ? 16 : wholeNumber(count)
    return bytes < 1 || bytes > 1000 ? undefined : textNode(`encode_base16(random_bytes(${bytes}))`)
  },
  'CGI.unescape': ofText((text) => `decode_percent(replace(${text}, "+", " "))`),
  'SecureRandom.uuid': (words) => (words.length === 0 ? textNode('uuid_v4()') : undefined),
  'Socket.gethostname': (words) => (words.length === 0 ? textNode('(get_hostname() ?? "")') : undefined),
  Integer: number('\\d+', 'to_int', 'integer'),
  Float: number('\\d+(?:\\.\\d+)?(?:[eE][-+]?\\d+)?', 'to_float', 'float'),
  String: ([word]) => (word === undefined ? undefined : textNode(asText(word))),
}
