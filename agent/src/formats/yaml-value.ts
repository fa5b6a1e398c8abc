// YAML documents as values. Plain scalars follow YAML 1.2: `yes`, `017` and dates stay text.

import {
  Composer,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  Parser,
  type Scalar,
} from 'yaml'
import { float, integer, isFloat, isInteger, setField, type Value, type ValueObject } from '../event/value.ts'

const maxNodes = 200_000
const maxDepth = 128
const tooDeep = 'the document is too large or nested too deep'

/** Escapes can form lone surrogates, which event texts must not contain. */
function wellFormed(value: Value): Value {
  return typeof value === 'string' ? value.toWellFormed() : value
}

/** The value of a text with a single document; a failure contains the reason. */
export function parseYaml(written: string): { readonly value: Value } | { readonly problem: string } {
  // A lone carriage return ends a line too, which the library does not support.
  const text = written.replaceAll(/\r\n?/g, '\n')
  const lines = new LineCounter()
  const problem = (message: string, offset: number): { problem: string } => {
    const { line, col } = lines.linePos(offset)
    return { problem: `${message} at line ${line}, column ${col}` }
  }
  if (nestedTooDeep(text)) return { problem: tooDeep }
  let document: Document.Parsed | undefined
  try {
    const composer = new Composer({ schema: 'failsafe', uniqueKeys: false, logLevel: 'silent', prettyErrors: false })
    const documents: Document.Parsed[] = []
    for (const token of new Parser(lines.addNewLine).parse(text)) {
      // The first error is enough, because invalid text has an error at every token.
      if (token.type === 'error') return problem(token.message, token.offset)
      documents.push(...composer.next(token))
      if (documents.length > 1) return { problem: 'the text has several documents' }
    }
    documents.push(...composer.end(true, text.length))
    if (documents.length > 1) return { problem: 'the text has several documents' }
    document = documents[0]
  } catch (error) {
    if (error instanceof RangeError) return { problem: tooDeep }
    throw error
  }
  const error = document?.errors[0]
  if (error !== undefined) return problem(error.message, error.pos[0])
  let nodes = 0
  const anchors = new Map<string, Node>()
  const valueFrom = (node: unknown, depth: number): Value => {
    // Aliases can make a small text large.
    if (++nodes > maxNodes || depth > maxDepth) throw new RangeError(tooDeep)
    if (isAlias(node)) {
      const meant = anchors.get(node.source)
      if (meant === undefined) throw new RangeError(`the alias ${node.source} stands for nothing`)
      return valueFrom(meant, depth + 1)
    }
    if (isNode(node) && node.anchor !== undefined) anchors.set(node.anchor, node)
    const tag = isScalar(node) || isSeq(node) || isMap(node) ? node.tag : undefined
    if (tag?.startsWith('!')) throw new RangeError(`the tag ${tag} is not known`)
    if (isScalar(node)) return wellFormed(tag === undefined ? untagged(node) : tagged(tag, node))
    if (isSeq(node)) return node.items.map((item) => valueFrom(item, depth + 1))
    if (!isMap(node)) return null
    const fields: ValueObject = {}
    for (const { key, value } of node.items) {
      if (isScalar(key) && key.source === '' && key.type === 'PLAIN') throw new RangeError('a key is missing')
      const name = isScalar(key) ? String(key.value).toWellFormed() : undefined
      if (name === undefined) throw new RangeError('a key is not a scalar')
      setField(fields, name, valueFrom(value as Node | null, depth + 1))
    }
    return fields
  }
  try {
    return { value: valueFrom(document?.contents, 0) }
  } catch (error) {
    return { problem: (error as Error).message }
  }
}

function untagged(node: Scalar): Value {
  return node.type === 'PLAIN' ? plain(String(node.value)) : String(node.value)
}

/** Converts a scalar to the type of its tag; other YAML tags give text. */
function tagged(tag: string, node: Scalar): Value {
  const type = tag.replace(/^tag:yaml\.org,2002:/, '')
  const text = node.source ?? String(node.value)
  const value = plain(text)
  const wrong = (): never => {
    throw new RangeError(`${JSON.stringify(text)} is not of the type ${type}`)
  }
  switch (type) {
    case 'null':
      return value === null ? value : wrong()
    case 'bool':
      return typeof value === 'boolean' ? value : wrong()
    case 'int':
      return isInteger(value) ? value : wrong()
    case 'float':
      return isFloat(value) ? value : isInteger(value) ? float(Number(value)) : wrong()
    default:
      return text
  }
}

/** Whether brackets are nested too deeply to be parsed. */
function nestedTooDeep(text: string): boolean {
  // Most texts have too few brackets.
  if (text.split(/[[{]/, maxDepth + 2).length <= maxDepth + 1) return false
  let depth = 0
  for (const token of new Lexer().lex(text)) {
    if (token === '[' || token === '{') {
      if (++depth > maxDepth) return true
    } else if (token === ']' || token === '}') depth--
  }
  return false
}

function plain(text: string): Value {
  switch (text) {
    case '':
    case '~':
    case 'null':
    case 'Null':
    case 'NULL':
      return null
    case 'true':
    case 'True':
    case 'TRUE':
      return true
    case 'false':
    case 'False':
    case 'FALSE':
      return false
  }
  const whole = /^([+-]?)(0|[1-9]\d*|0x[0-9A-Fa-f]+|0o[0-7]+|0b[01]+)$/.exec(text)
  if (whole !== null && text.length < 100) {
    const magnitude = BigInt(whole[2] as string)
    const value = whole[1] === '-' ? -magnitude : magnitude
    return BigInt.asIntN(64, value) === value ? integer(value) : float(Number(value))
  }
  if (/^[+-]?(?:\d+(?:\.\d*|(?=[eE]))|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) && !/^[+-]?0\d/.test(text)) {
    return float(Number(text))
  }
  if (/^\.(?:nan|NaN|NAN)$/.test(text)) throw new RangeError('a value is not a number, which no event can hold')
  const special = /^([+-]?)\.(?:inf|Inf|INF)$/.exec(text)
  if (special !== null) return float(special[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY)
  return text
}
