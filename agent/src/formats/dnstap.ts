// Messages of dnstap (dnstap.info): events of a name server, with their DNS messages. They are parsed here, because their few fields only
// need `protobuf.ts`.

import { Timestamp } from '../event/timestamp.ts'
import { integer, type Value, type ValueObject } from '../event/value.ts'
import {
  type DnsMessage,
  extensionFields,
  headerFields,
  MalformedDnsMessage,
  parseDnsMessage,
  questionFields,
  recordFields,
  responseCodeName,
} from './dns-message.ts'
import { ipText } from './ip.ts'
import { MalformedProtobuf, ProtobufReader } from './protobuf.ts'

const messageTypes = [
  '',
  'AuthQuery',
  'AuthResponse',
  'ResolverQuery',
  'ResolverResponse',
  'ClientQuery',
  'ClientResponse',
  'ForwarderQuery',
  'ForwarderResponse',
  'StubQuery',
  'StubResponse',
  'ToolQuery',
  'ToolResponse',
  'UpdateQuery',
  'UpdateResponse',
] as const
const protocols = ['', 'UDP', 'TCP', 'DOT', 'DOH', 'DNSCryptUDP', 'DNSCryptTCP', 'DOQ'] as const

/** The fields of a message; a sentence if it is invalid. */
export function parseDnstap(data: Buffer, lowercase: boolean): ValueObject | string {
  try {
    return readDnstap(new ProtobufReader(data), lowercase)
  } catch (error) {
    if (error instanceof MalformedProtobuf || error instanceof MalformedDnsMessage) return error.message
    throw error
  }
}

function readDnstap(reader: ProtobufReader, lowercase: boolean): ValueObject | string {
  const fields: ValueObject = {}
  let type = 0
  let message: ProtobufReader | undefined
  while (reader.next()) {
    if (reader.field === 1) fields['serverId'] = reader.text()
    else if (reader.field === 2) fields['serverVersion'] = reader.text()
    else if (reader.field === 3) fields['extraInfo'] = reader.text()
    else if (reader.field === 14) message = reader.message()
    else if (reader.field === 15) type = Number(reader.unsigned())
    else reader.skip()
  }
  if (type !== 1 || message === undefined) return 'it is not a dnstap message'
  fields['dataType'] = 'Message'
  fields['dataTypeId'] = type
  readMessage(message, fields, lowercase)
  return fields
}

function readMessage(reader: ProtobufReader, fields: ValueObject, lowercase: boolean): void {
  let type = 0
  const times = new Map<number, bigint>()
  const named = (name: string): string => (lowercase ? name.toLowerCase() : name)
  while (reader.next()) {
    switch (reader.field) {
      case 1:
        type = Number(reader.unsigned())
        fields['messageTypeId'] = type
        fields['messageType'] = messageTypes[type] ?? null
        break
      case 2:
        fields['socketFamily'] = reader.unsigned() === 1n ? 'INET' : 'INET6'
        break
      case 3:
        fields['socketProtocol'] = protocols[Number(reader.unsigned())] ?? null
        break
      case 4:
        fields['sourceAddress'] = addressText(reader.bytes())
        break
      case 5:
        fields['responseAddress'] = addressText(reader.bytes())
        break
      case 6:
        fields['sourcePort'] = Number(reader.unsigned())
        break
      case 7:
        fields['responsePort'] = Number(reader.unsigned())
        break
      case 8:
      case 12:
        times.set(reader.field, reader.unsigned())
        break
      case 9:
      case 13:
        times.set(reader.field, BigInt(reader.fixed32()))
        break
      case 10:
        fields['requestData'] = messageFields(reader.bytes(), fields, named)
        break
      case 11:
        // The zone is a name in wire format, so it is read as a message with one question.
        fields['queryZone'] = named(zoneName(reader.bytes()))
        break
      case 14:
        fields['responseData'] = messageFields(reader.bytes(), fields, named)
        break
      default:
        reader.skip()
    }
  }
  // Even types are responses.
  const first = type % 2 === 0 ? 12 : 8
  const seconds = times.get(first)
  if (seconds !== undefined) {
    const nanoseconds = seconds * 1_000_000_000n + (times.get(first + 1) ?? 0n)
    fields['time'] = integer(BigInt.asIntN(64, nanoseconds))
    fields['timePrecision'] = 'ns'
    fields['timestamp'] = Timestamp.fromNanoseconds(nanoseconds)
  }
}

function addressText(bytes: Buffer): string | null {
  return bytes.length === 4 || bytes.length === 16 ? ipText(Uint8Array.from(bytes)) : null
}

function zoneName(bytes: Buffer): string {
  const head = Buffer.alloc(12)
  head.writeUInt16BE(1, 4)
  return parseDnsMessage(Buffer.concat([head, bytes, Buffer.alloc(4)])).questions[0]?.name ?? '.'
}

/** A DNS message as fields; an unreadable message is kept in Base64, with the reason. */
function messageFields(data: Buffer, fields: ValueObject, named: (name: string) => string): ValueObject {
  let message: DnsMessage
  try {
    message = parseDnsMessage(data)
  } catch (error) {
    if (!(error instanceof MalformedDnsMessage)) throw error
    fields['error'] = error.message
    return { rawData: data.toString('base64') }
  }
  const result: ValueObject = {
    fullRcode: message.responseCode,
    header: { ...headerFields(message), id: message.id },
    rcodeName: responseCodeName(message.responseCode),
  }
  if (message.questions.length > 0) {
    result['question'] = message.questions.map((question) =>
      questionFields({ ...question, name: named(question.name) }),
    )
  }
  const sections = { answers: message.answers, authority: message.authorities, additional: message.additional }
  for (const [section, records] of Object.entries(sections)) {
    if (records.length === 0) continue
    result[section] = records.map((record): Value => recordFields({ ...record, name: named(record.name) }))
  }
  if (message.extension !== undefined) result['opt'] = extensionFields(message.extension)
  return result
}
