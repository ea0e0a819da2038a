// SPDX-License-Identifier: Apache-2.0
// Converters of torch's three Fourier transforms, which all functions of torch.fft come down to: one axis
// at a time.
#pragma once

#include "importers/aten/converters/call.h"

namespace ingot::core::aten {

void fourier_of_complex(Call& call);  // _fft_c2c
void fourier_of_reals(Call& call);    // _fft_r2c
void fourier_to_reals(Call& call);    // _fft_c2r
// stft, which torch decomposes for one size of the batch alone.
void short_time_fourier(Call& call);

}  // namespace ingot::core::aten
