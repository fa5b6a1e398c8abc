// The protobuf message of a `parse_proto` or `encode_proto` call: a type of a descriptor set in a file.

import { compileMessage, type MessageFormat } from '../formats/protobuf-message.ts'
import { GivenFileError, readGivenFile } from '../given-file.ts'
import type { CallSite, Parameter } from './function.ts'
import { kinds } from './kind.ts'

export const descriptorParameters: readonly Parameter[] = [
  {
    name: 'desc_file',
    kind: kinds.string,
    static: true,
    meaning: 'file',
    description: 'Path of the descriptor set, the output of `protoc --include_imports --descriptor_set_out`.',
  },
  {
    name: 'message_type',
    kind: kinds.string,
    static: true,
    description: 'Full name of the message type, such as `shop.v1.Order`.',
  },
]

export function messageOf(call: CallSite): MessageFormat {
  const path = call.constant('desc_file') as string
  let data: Buffer
  try {
    data = readGivenFile({ option: 'desc_file', path })
  } catch (error) {
    if (!(error instanceof GivenFileError)) throw error
    return call.reject(`the file of descriptors "${path}" cannot be read: ${error.reason}`)
  }
  const format = compileMessage(data, call.constant('message_type') as string)
  return typeof format === 'string'
    ? call.reject(`the file of descriptors "${path}" cannot be used: ${format}`)
    : format
}
